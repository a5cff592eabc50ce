"""What a hunt brings home."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Find"]


@dataclass(frozen=True)
class Find:
    """One fault: a call of one line that shows it, what it says, and what it should have said."""

    call: str
    says: str
    should: str

    def __str__(self) -> str:
        return f"{self.call}\n    says:   {self.says}\n    should: {self.should}"
