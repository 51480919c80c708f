"""The catalogue of models, one module a family. Adding a model is one entry in a family's `MODELS`."""

from __future__ import annotations

from planner.catalogue import deepseek, glm, kimi, llama, minimax, qwen3, qwen35
from planner.models import Model

_FAMILIES = (kimi, glm, qwen35, minimax, qwen3, llama, deepseek)
CATALOGUE: dict[str, Model] = {model.name: model for family in _FAMILIES for model in family.MODELS}

_BY_REPOSITORY = {model.repository.lower(): model for model in CATALOGUE.values()}


def find(name: str) -> Model | None:
    """The entry of a name or of a repository on the Hub, as `kimi-k2.5` or `moonshotai/Kimi-K2.5`; case is ignored."""
    return CATALOGUE.get(name.lower()) or _BY_REPOSITORY.get(name.lower())


def precisions(model: Model) -> dict[str, Model]:
    """The checkpoints of the same model, by precision."""
    return {other.precision: other for other in CATALOGUE.values() if other.family == model.family}
