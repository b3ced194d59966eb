"""Running an evaluation: what will be asked, sealed before the first trial, and its trials one by one."""

from boundwatch.evaluation.audit import Audit, AuditFinding
from boundwatch.evaluation.evaluation import Evaluation
from boundwatch.evaluation.protocol import Protocol
from boundwatch.evaluation.replay import Outcome, Trial

__all__ = ["Audit", "AuditFinding", "Evaluation", "Outcome", "Protocol", "Trial"]
