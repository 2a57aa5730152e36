"""The recorded searches of memories as an SVG image: tokens, drops, use of the budget, and roles.

It shows counts only, and no text of a memory or of a query.
"""

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from orchestrator.store.rows import Retrieval

_CLASSES: Final = 10
_WIDTH, _LABEL, _BAR = 520, 130, 320
_LINE, _HEAD = 20, 34


def picture(retrievals: "Sequence[Retrieval]") -> str:
    """Four bar charts. Three count searches by a figure of theirs, and one counts memories by their role."""
    found: list[dict[str, Any]] = [dict(each.observability) for each in retrievals]
    packaging = [each["packaging"] for each in found if "packaging" in each]
    assembly = [each["assembly"] for each in found if "assembly" in each]
    dropped = [
        len(each["packaging"]["droppedIds"]) / each["retrieval"]["candidateCount"]
        for each in found
        if "packaging" in each and each.get("retrieval", {}).get("candidateCount")
    ]
    used = [each["finalTokenCost"] / each["tokenBudget"] for each in assembly if each["tokenBudget"]]
    roles = Counter(role for each in packaging for role in each["evidenceRoles"].values())
    charts = [
        ("Searches by tokens", _by_tokens([each["finalTokenCost"] for each in assembly])),
        ("Searches by share of candidates dropped", _by_share(dropped)),
        ("Searches by share of the token budget used", _by_share(used)),
        ("Memories by role", dict(roles.most_common())),
    ]
    heights = [_HEAD + _LINE * max(len(bars), 1) for _, bars in charts]
    tops = accumulate(heights, initial=0)
    parts = [_chart(top, title, bars) for top, (title, bars) in zip(tops, charts, strict=False)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" '
            f'width="{_WIDTH}" height="{sum(heights) + 10}">',
            f"<title>{len(found)} recorded searches of memories</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _by_tokens(costs: Sequence[int]) -> dict[str, int]:
    """Classes of equal width from 0 to the highest cost."""
    wide = max(costs, default=0) // _CLASSES + 1
    labels = [f"{number * wide} to {(number + 1) * wide - 1}" for number in range(_CLASSES)]
    return _counted(labels, (cost // wide for cost in costs)) if costs else {}


def _by_share(shares: Sequence[float]) -> dict[str, int]:
    """Ten classes of ten percent each. The last one includes 100 %."""
    labels = [f"{number * 10} to {(number + 1) * 10} %" for number in range(_CLASSES)]
    return _counted(labels, (min(int(share * 10), _CLASSES - 1) for share in shares)) if shares else {}


def _counted(labels: Sequence[str], classes: Iterable[int]) -> dict[str, int]:
    counts = Counter(classes)
    return {label: counts[number] for number, label in enumerate(labels)}


def _chart(top: int, title: str, bars: Mapping[str, int]) -> str:
    parts = [f'<text x="10" y="{top + 22}" font-weight="bold">{html.escape(title)}</text>']
    most = max(bars.values(), default=0) or 1
    for number, (label, count) in enumerate(bars.items()):
        y = top + _HEAD + number * _LINE
        parts.append(f'<text x="{_LABEL - 8}" y="{y + 12}" text-anchor="end">{html.escape(label)}</text>')
        parts.append(
            f'<rect x="{_LABEL}" y="{y}" width="{_BAR * count / most:.1f}" height="14" fill="#2a7f62"/>'
        )
        parts.append(f'<text x="{_LABEL + _BAR * count / most + 6:.1f}" y="{y + 12}">{count}</text>')
    if not bars:
        parts.append(f'<text x="10" y="{top + _HEAD + 12}">none recorded</text>')
    return "\n".join(parts)
