"""How many trials: until a shift is noticed, before there is a certificate, until two policies differ."""

from boundwatch.planning.against_certificate import SIZES, Plan, plan, time_to_alarm
from boundwatch.planning.before_certificate import Booking, TrialPlan, plan_trials
from boundwatch.planning.mean_over_tasks import TasksPlan, plan_tasks
from boundwatch.planning.power import Power
from boundwatch.planning.precision import WidthPlan, plan_width
from boundwatch.planning.two_policies import ComparisonPlan, plan_comparison

__all__ = [
    "SIZES",
    "Booking",
    "ComparisonPlan",
    "Plan",
    "Power",
    "TasksPlan",
    "TrialPlan",
    "WidthPlan",
    "plan",
    "plan_comparison",
    "plan_tasks",
    "plan_trials",
    "plan_width",
    "time_to_alarm",
]
