"""Sentences of reports and verdicts: functions of the numbers beside them."""
