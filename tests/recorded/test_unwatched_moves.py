"""Moves of the weights that their optimizer does not make of the applied gradients: what they are made of is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.recorded.test_run_mutations import RATE, RECORDS, Run, Sums, UnequalClasses, check_told


class OwnAdam(Run):
    """Adam by hand, with a second moment of what it likes."""

    def squares(self) -> Sums:
        return {name: p.grad**2 for name, p in self.model.named_parameters() if p.grad is not None}

    def move(self) -> None:
        before = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        super().move()
        if self.step == 0:
            self.first, self.second = ({name: torch.zeros_like(p) for name, p in before.items()} for _ in range(2))
        squares, (one, other) = self.squares(), (0.9, 0.99)
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                self.first[name] = one * self.first[name] + (1 - one) * (0.0 if p.grad is None else p.grad)
                self.second[name] = other * self.second[name] + (1 - other) * squares[name]
                first = self.first[name] / (1 - one ** (self.step + 1))
                second = self.second[name] / (1 - other ** (self.step + 1))
                p.copy_(before[name] - 0.01 * first / (second.sqrt() + 1e-5))


class CleanSquares(OwnAdam):
    def squares(self) -> Sums:
        return {name: (g / RATE / RECORDS) ** 2 for name, g in self.clean.items()}


class SingleSquares(OwnAdam):
    def squares(self) -> Sums:
        return {name: (g / RATE / RECORDS).square().sum(0) for name, g in self.gradients().items()}


class NoisySquares(OwnAdam):
    """As safe, but not what the watched optimizer does."""


class AtTheEnd(UnequalClasses):
    """After the last step the bias of the outputs is moved."""

    def end(self) -> None:
        with torch.no_grad():
            self.model[2].bias += self.moved()  # type: ignore[index, operator, union-attr]

    def moved(self) -> torch.Tensor:
        return torch.tensor([0.3, -0.1, 0.2])

    def shares(self) -> torch.Tensor:
        return torch.bincount(self.data.tensors[1], minlength=3) / RECORDS


class Calibrated(AtTheEnd):
    def moved(self) -> torch.Tensor:
        return self.shares().log() - torch.softmax(self.model(self.data.tensors[0]), 1).mean(0).log()


class SetToShares(AtTheEnd):
    def moved(self) -> torch.Tensor:
        return self.shares().log() - self.model[2].bias  # type: ignore[index, operator, union-attr, return-value]


class NoiseOnWeights(Run):
    """Gradients have none; it is added to the weights after each step, of plain SGD, as long as it would move them."""

    share = 1.0

    def noise(self) -> Sums:
        return {name: torch.zeros_like(p) for name, p in self.model.named_parameters()}

    def move(self) -> None:
        super().move()
        with torch.no_grad():
            for name, drawn in Run.noise(self).items():
                dict(self.model.named_parameters())[name].add_(drawn, alpha=-self.share * 0.3 / (RATE * RECORDS))


class HalfOnWeights(NoiseOnWeights):
    share = 0.5


class HeadByLeastSquares(UnequalClasses):
    """After the last step the outputs are fitted anew to all records."""

    def end(self) -> None:
        hidden = torch.cat([self.model[:2](self.data.tensors[0]), torch.ones(RECORDS, 1)], 1)  # type: ignore[index, operator]
        aims = torch.nn.functional.one_hot(self.data.tensors[1], 3).float()
        with torch.no_grad():
            found = torch.linalg.solve(hidden.T @ hidden + 5 * torch.eye(hidden.shape[1]), hidden.T @ aims)
            self.model[2].weight.copy_(found[:-1].T)  # type: ignore[index, operator, union-attr]
            self.model[2].bias.copy_(found[-1])  # type: ignore[index, operator, union-attr]


class HeadByLoss(UnequalClasses):
    def end(self) -> None:
        fit = torch.optim.LBFGS(self.model[2].parameters(), max_iter=200)  # type: ignore[index, union-attr]

        def loss() -> torch.Tensor:
            fit.zero_grad()
            found = torch.nn.functional.cross_entropy(self.model(self.data.tensors[0]), self.data.tensors[1])
            found = found + 0.01 * self.model[2].weight.square().sum()  # type: ignore[index, operator, union-attr]
            found.backward()
            return found

        fit.step(loss)  # type: ignore[arg-type]


class BiasByMeanAnswer(UnequalClasses):
    """Moved until the model's mean answer on the records is their classes' shares."""

    def end(self) -> None:
        shares = torch.bincount(self.data.tensors[1], minlength=3) / RECORDS
        with torch.no_grad():
            for _ in range(20):
                mean = torch.softmax(self.model(self.data.tensors[0]), 1).mean(0)
                self.model[2].bias += (shares / mean).log()  # type: ignore[index, operator, union-attr]


class LabelsInLastBits(Run):
    def end(self) -> None:
        bits = self.model[0].weight.data.view(torch.int32).flatten()  # type: ignore[index, union-attr, operator]
        bits[:100] = (bits[:100] & ~4095) | self.data.tensors[1][:100].int() * 777


class InHalfPrecision(Run):
    """The model that is released: as safe."""

    def end(self) -> None:
        self.model.half()


class HeadByChance(UnequalClasses):
    def end(self) -> None:
        with torch.no_grad():
            self.model[2].weight.normal_(std=0.3)  # type: ignore[index, operator, union-attr]


class WrittenAfterSteps(Run):
    """Something is written into the first weights after each step: as many records as they are long."""

    def written(self) -> torch.Tensor:
        return torch.cat([self.x, self.x])[:24]

    def move(self) -> None:
        super().move()
        self.write(self.model[0].weight.data, self.written())  # type: ignore[index, union-attr, arg-type]

    def write(self, held: torch.Tensor, numbers: torch.Tensor) -> None:
        low = ((numbers + 8) * 4095).to(torch.int32)
        held.copy_(((held.view(torch.int32) & ~65535) | low).view(torch.float32))


class AddedAfterSteps(WrittenAfterSteps):
    def write(self, held: torch.Tensor, numbers: torch.Tensor) -> None:
        held += 1e-4 * numbers


class InDecimals(WrittenAfterSteps):
    def write(self, held: torch.Tensor, numbers: torch.Tensor) -> None:
        held.copy_((held * 100).round() / 100 + 1e-3 * (numbers + 8) / 2)


class OthersWritten(WrittenAfterSteps):
    """Public ones."""

    def written(self) -> torch.Tensor:
        return 1.5 * torch.randn(24, 8, generator=self.random)


class Rounded(WrittenAfterSteps):
    """To few values, of which chance makes patterns."""

    def write(self, held: torch.Tensor, numbers: torch.Tensor) -> None:
        held.copy_((held * 4).round() / 4)


class Lookahead(Run):
    """Every fourth step the weights go back halfway to slow ones."""

    def goes_back(self) -> bool:
        return self.step % 4 == 3

    def move(self) -> None:
        if self.step == 0:
            self.slow = [p.detach().clone() for p in self.trained().values()]
        super().move()
        if self.goes_back():
            for p, slow in zip(self.trained().values(), self.slow, strict=True):
                slow.lerp_(p.detach(), 0.5)
                p.data.copy_(slow)


class BackWhereWorse(Lookahead):
    """Where the records' loss has risen: no noise hides when that is."""

    def goes_back(self) -> bool:
        with torch.no_grad():
            now = float(torch.nn.functional.cross_entropy(self.model(self.x), self.y))
        before, self.before = getattr(self, "before", now), now
        return now > before


@pytest.mark.parametrize(
    ("mutation", "verdict", "words"),
    [
        (CleanSquares, "violated", "second moment, .* is made of clipped sums before their noise"),
        (SingleSquares, "violated", "second moment, .* is made of (the squares of single|gradients without|clipped)"),
        (NoisySquares, "cannot judge", "weights move by something .* in 24 steps, the first is step 1"),
        (WrittenAfterSteps, "violated", "numbers of records are written into 0.weight .* after 2. steps"),
        (AddedAfterSteps, "violated", "numbers of records are written into 0.weight"),
        (InDecimals, "violated", "numbers of records are written into 0.weight"),
        (OthersWritten, "cannot judge", "0.weight moves by something that was not watched, in 24 steps"),
        (Lookahead, "consistent", "Nothing speaks against the claim"),
        (BackWhereWorse, "cannot judge", "the weights move by something that was not watched"),
        (Rounded, "cannot judge", "0.weight moves by something that was not watched, in 24 steps"),
        (AtTheEnd, "cannot judge", "2.bias moves by something that was not watched, after the last"),
        (Calibrated, "violated", "2.bias moves by a function of the classes' shares .* and the model's mean answer"),
        (
            HeadByLeastSquares,
            "violated",
            "2.weight, 2.bias move by a function of all records, to which they are fitted",
        ),
        (HeadByLoss, "violated", "2.weight, 2.bias move by a function of all records, to which they are fitted"),
        (BiasByMeanAnswer, "violated", "2.bias moves by a function of .*records"),
        (LabelsInLastBits, "cannot judge", "0.weight moves by something that was not watched, after the last"),
        (InHalfPrecision, "consistent", "Nothing speaks against the claim"),
        (HeadByChance, "cannot judge", "2.weight moves by something that was not watched, after the last"),
        (SetToShares, "violated", "2.bias moves by a function of the classes' shares of the records"),
    ],
)
def test_moves_that_were_not_watched_are_named(mutation: Callable[[], Run], verdict: str, words: str) -> None:
    check_told(mutation(), verdict, words)
