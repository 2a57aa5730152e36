"""Says at which boundary of a search a memory fell out, and by how much. Pure."""

from orchestrator.recall.context.result import RetrievalResult
from orchestrator.store.rows import IndexedMemory, Memory


def why(
    result: RetrievalResult, memory: Memory | None, indexed: IndexedMemory | None, model: str
) -> tuple[str, str]:
    """The boundary and a sentence about it. The result must be of a search that watched the memory."""
    if memory is None or memory.deleted_at is not None:
        return "unknown", "This person has no such memory, or it is deleted."
    if memory.archived:
        return "archived", "It is archived. Archived memories are never searched."
    if indexed is None:
        return "not indexed", "It is not in the index yet."
    retrieval, packaging = result.retrieval_summary, result.packaging_summary
    assembly = result.assembly_summary
    if retrieval is None or packaging is None or assembly is None:
        return "no search", "The query named a memory, so no search ran."
    if memory.id in assembly.final_ids:
        place = next(each.position for each in result.memories if each.id == memory.id)
        role = packaging.evidence_roles[memory.id]
        return "found", f"It was found: position {place}, score {result.scores[memory.id]:.3f}, role {role}."
    if memory.id in packaging.included_ids:
        over = packaging.token_cost - (assembly.token_budget or 0)
        return "budget", f"It was packaged, but the context was {over} tokens over its budget."
    score = result.scores.get(memory.id)
    if memory.id in retrieval.candidate_ids:
        return "packaging", _not_included(memory.id, score or 0.0, result)
    if score is None:
        return "period", f"It was not said in the dates that the search was narrowed to: {retrieval.period}."
    if score < retrieval.minimum_score:
        lacks = retrieval.minimum_score - score
        other = "" if indexed.model == model else " Its vectors are of another model."
        return (
            "minimum",
            f"Its score is {score:.3f}, {lacks:.3f} below the minimum {retrieval.minimum_score}.{other}",
        )
    if retrieval.period is not None:
        return "period", f"It was not said in the dates that the search was narrowed to: {retrieval.period}."
    return "candidates", f"Its score is {score:.3f}, but {retrieval.candidate_count} others were better."


def _not_included(memory_id: str, score: float, result: RetrievalResult) -> str:
    retrieval, packaging = result.retrieval_summary, result.packaging_summary
    assert retrieval is not None and packaging is not None  # noqa: S101, PT018  the caller has checked it
    position = retrieval.candidate_ids.index(memory_id) + 1
    included = [each for each in retrieval.candidate_ids if each in packaging.included_ids]
    last = max((retrieval.candidate_ids.index(each) + 1 for each in included), default=0)
    if position < last:
        return f"It was candidate {position}, but another memory says the same or was made from it."
    lowest = min((each.score for each in result.memories), default=0.0)
    return (
        f"It was candidate {position}, with score {score:.3f}; {len(included)} were wanted,"
        f" and the last of them has {lowest:.3f}."
    )
