/** A button that asks before it acts. */

import { useRef, type ReactNode } from "react";

interface ConfirmedButtonProps {
  label: string;
  title: string;
  children: ReactNode;
  confirm: string;
  /** What leaves everything as it is. */
  cancel?: string;
  /** Null disables the button. */
  onConfirm: (() => void) | null;
  onOpen?: () => void;
  quiet?: boolean;
}

export function ConfirmedButton({ label, title, children, confirm, cancel = "Stay", onConfirm, onOpen, quiet = false }: ConfirmedButtonProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = () => {
    onOpen?.();
    dialog.current?.showModal();
  };
  return (
    <>
      <button type="button" className={quiet ? "quiet" : ""} disabled={!onConfirm} onClick={open}>
        {label}
      </button>
      <dialog ref={dialog} aria-label={title}>
        <form method="dialog">
          <h2>{title}</h2>
          <div className="dialog-text">{children}</div>
          <div className="choices">
            <button type="submit">{cancel}</button>
            <button type="submit" className="primary" onClick={() => onConfirm?.()}>
              {confirm}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}
