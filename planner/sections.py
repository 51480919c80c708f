"""What every section of the stack file is made of: its base, and the types of single values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel

from planner import checks, kubernetes_spelling


def _holds_number(annotation: object) -> bool:
    return annotation in (int, float) or any(map(_holds_number, get_args(annotation)))


class Section(BaseModel):
    """Part of the stack file: camelCase keys, unknown keys refused, never changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _no_truth_value_for_a_number(cls, values: object) -> object:
        """Python takes `true` for 1. As text it is refused wherever a number belongs, at its own place."""
        numbers = {
            name
            for field, info in cls.model_fields.items()
            if _holds_number(info.annotation)
            for name in (field, info.alias)
        }
        if not isinstance(values, Mapping):
            return values
        return {key: checks.as_text(value) if key in numbers else value for key, value in values.items()}


def kind_or(default: str) -> Discriminator:
    """Chooses among sections by their `kind`, and takes one that names none for `default`."""

    def kind(value: object) -> str:
        if isinstance(value, Mapping):
            return str(value.get("kind", default))
        return str(getattr(value, "kind", default))

    return Discriminator(kind)


ClosedCidr = Annotated[str, AfterValidator(checks.closed_cidr)]
PinnedImage = Annotated[str, AfterValidator(checks.pinned_image)]
GitCommit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Usd = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False), BeforeValidator(checks.as_text)]
Word = Annotated[str, Field(min_length=1), BeforeValidator(checks.as_word)]
Url = Annotated[str, AfterValidator(checks.url)]
PrincipalArn = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+$")]
BucketName = Annotated[str, AfterValidator(checks.bucket_name)]
Namespace = Annotated[str, AfterValidator(kubernetes_spelling.namespace)]
ClaimName = Annotated[str, AfterValidator(kubernetes_spelling.claim_name)]
AbsolutePath = Annotated[str, AfterValidator(checks.absolute_path)]
BucketPrefix = Annotated[str, AfterValidator(checks.bucket_prefix)]
RelativePath = Annotated[str, AfterValidator(checks.relative_path)]
LabelKey = Annotated[str, AfterValidator(kubernetes_spelling.label_key)]
LabelValue = Annotated[str, AfterValidator(kubernetes_spelling.label_value), BeforeValidator(checks.as_word)]
Labels = Annotated[
    dict[str, Annotated[str, BeforeValidator(checks.as_word)]], AfterValidator(kubernetes_spelling.labels)
]
GigabytesPerSecond = Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
