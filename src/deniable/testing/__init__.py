"""Privacy tests: run a training once, watch it, and tell whether it does what it claims, and in which line not.

The pytest plugin is `pytest_deniable`, beside this package; the command is `deniable examine`.

check_training (one run, a budget, the verdict; needs torch) | cause_lines (where the training draws and steps, and
which of these lines decides a part of the claim) | findings (a result as failures, for people and for code scanners) |
own_script (a function that is named on the command line).
"""

from deniable.testing.check_training import read_seconds
from deniable.testing.findings import Finding, false_alarm_rate, findings_of, message_of, sarif_document

__all__ = [
    "Finding",
    "false_alarm_rate",
    "findings_of",
    "message_of",
    "read_seconds",
    "sarif_document",
]
