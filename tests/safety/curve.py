"""Draws dangers found against alarms on everyday utterances: `python -m tests.safety.curve UTTERANCES`.

UTTERANCES is a file with an ordinary utterance in each line; none of them is committed. The dangers are those
of the sets in this folder. What is drawn is the share of each that raises an alarm, possible or certain, over
the likeness that a possible emergency without a rule needs; a crisis needs as much more as in use.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agents.safety.detector import ALONE, ALONE_CRISIS, DangerDetector
from agents.safety.verdict import MEANING
from orchestrator.settings import load
from orchestrator.wiring import load_classifier, load_embedder
from tests.safety.phrases import ASIDE, BLIND, BLIND_LATER, HELD_OUT, UNSEEN, phrases
from tests.safety.report import wilson
from tests.support.brains.models import the_guard
from tools.setup.toolchain import CHECKOUT

PICTURE: Final = CHECKOUT / "docs" / "images" / "safety-curve.svg"
FOLDERS: Final = (HELD_OUT, BLIND, BLIND_LATER, ASIDE, UNSEEN)
THRESHOLDS: Final = tuple(each / 100 for each in range(30, 91, 3))
ALWAYS: Final = 9.0
"""The level of a text that a rule flags, whatever the threshold is."""
WIDTH, HEIGHT, EDGE = 640, 400, 70
MOST_ALARMS: Final = 0.03
FEWEST_FOUND: Final = 0.7


def levels(detector: DangerDetector, texts: Sequence[str]) -> list[float]:
    """Up to which threshold each text raises an alarm."""
    found = []
    for text in texts:
        checked = detector.examine(text)
        verdict, extra = checked.verdict, 0.0
        if checked.likeness is not None and checked.likeness.crisis > checked.likeness.emergency:
            extra = ALONE_CRISIS - ALONE
        by_rules = verdict.flagged and set(verdict.rule_ids) != {MEANING}
        found.append(ALWAYS if by_rules else checked.meaning - extra)
    return found


def share(levels: Sequence[float], threshold: float) -> float:
    """The share of texts that raise an alarm at a threshold."""
    return sum(level >= threshold for level in levels) / len(levels)


def drawn(alarms: Sequence[float], found: Sequence[float]) -> str:
    """The picture, as SVG."""

    def place(threshold: float) -> tuple[float, float]:
        x = EDGE + min(share(alarms, threshold) / MOST_ALARMS, 1) * (WIDTH - 2 * EDGE)
        height = (share(found, threshold) - FEWEST_FOUND) / (1 - FEWEST_FOUND)
        return x, HEIGHT - EDGE - max(height, 0) * (HEIGHT - 2 * EDGE)

    def text(x: float, y: float, said: str, anchor: str = "middle") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{said}</text>'

    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, THRESHOLDS))
    x, y = place(ALONE)
    low, right = HEIGHT - EDGE, WIDTH - EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{EDGE},{EDGE} V{low} H{right}" fill="none" stroke="#444"/>',
        *(text(EDGE + at / 3 * (right - EDGE), low + 20, f"{at / 3 * MOST_ALARMS:.0%}") for at in range(4)),
        *(
            text(EDGE - 8, low - at / 3 * (low - EDGE) + 4, f"{FEWEST_FOUND + at * 0.1:.0%}", "end")
            for at in range(4)
        ),
        text(WIDTH / 2, HEIGHT - 20, f"alarms on {len(alarms):,} everyday utterances"),
        text(EDGE, EDGE - 20, f"dangers found, of {len(found):,}", "start"),
        f'<polyline points="{line}" fill="none" stroke="#26c" stroke-width="2"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#c22"/>',
        text(
            x + 12,
            y + 18,
            f"in use ({ALONE}): {share(found, ALONE):.1%} found, {share(alarms, ALONE):.2%} alarms",
            "start",
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Draw the picture, and print the counts at the thresholds in use."""
    utterances = [line for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if line.strip()]
    settings = load(None, {})
    detector = DangerDetector(the_guard(), load_classifier(settings, load_embedder(settings)))
    alarms = levels(detector, utterances)
    by_kind = {
        name: levels(detector, [phrase.text for folder in FOLDERS for phrase in phrases(folder, name)])
        for name in ("emergencies", "crises")
    }
    for name, some in {"everyday utterances": alarms, **by_kind}.items():
        count = sum(level >= ALONE for level in some)
        low, high = wilson(count, len(some))
        sys.stdout.write(f"{name}: {count} of {len(some)} ({low:.2%} to {high:.2%})\n")
    PICTURE.write_text(drawn(alarms, [*by_kind["emergencies"], *by_kind["crises"]]), encoding="utf-8")
    sys.stdout.write(f"wrote {PICTURE.relative_to(CHECKOUT)}\n")


if __name__ == "__main__":
    main()
