/** How to sign in. */

export function SignInNotice() {
  return (
    <div className="notice">
      <p>
        You are not signed in. Run <code>anamnesis open</code> where the server runs, and open the address it prints. An
        address works once, within ten minutes.
      </p>
    </div>
  );
}
