"""Pure functions behind every number: numpy in, float64 out.

`kl` inverts the binary relative entropy, `pac_bayes` measures how far a posterior moved from its prior and
bounds the expected cost of a trained policy, `held_out` and `betting` bound a mean from fresh
costs. They trust their arguments; certificates and detectors check them.
"""

from boundwatch.bounds.anytime import anytime_lower, anytime_upper
from boundwatch.bounds.betting_limits import (
    betting_log_wealth,
    betting_lower,
    betting_p_value,
    betting_upper,
    fixed_bets,
    tuned_lower,
    tuned_upper,
)
from boundwatch.bounds.held_out import (
    binomial_p_value,
    chernoff_lower,
    chernoff_p_value,
    chernoff_upper,
    clopper_pearson_lower,
    clopper_pearson_upper,
    hoeffding_lower,
    hoeffding_p_value,
    hoeffding_upper,
)
from boundwatch.bounds.kl import (
    binary_kl,
    kl_inverse_lower,
    kl_inverse_upper,
    shift_kl_lower,
    shifted_mean_upper,
)
from boundwatch.bounds.pac_bayes import (
    kl_divergence,
    log_density_ratio,
    pac_bayes_complexity,
    pac_bayes_lower,
    pac_bayes_upper,
    pointwise_complexity,
    pointwise_lower,
    pointwise_upper,
    renyi_divergence,
)
from boundwatch.bounds.rounds import rounds_lower, rounds_upper

__all__ = ["anytime_lower", "anytime_upper", "binary_kl", "kl_inverse_lower", "kl_inverse_upper"]
__all__ += ["betting_log_wealth", "betting_lower", "betting_p_value", "betting_upper", "fixed_bets"]
__all__ += ["tuned_lower", "tuned_upper"]
__all__ += ["binomial_p_value", "clopper_pearson_lower", "clopper_pearson_upper"]
__all__ += ["chernoff_lower", "chernoff_p_value", "chernoff_upper"]
__all__ += ["hoeffding_lower", "hoeffding_p_value", "hoeffding_upper"]
__all__ += ["kl_divergence", "log_density_ratio", "renyi_divergence"]
__all__ += ["pac_bayes_complexity", "pac_bayes_lower", "pac_bayes_upper"]
__all__ += ["pointwise_complexity", "pointwise_lower", "pointwise_upper"]
__all__ += ["rounds_lower", "rounds_upper"]
__all__ += ["shift_kl_lower", "shifted_mean_upper"]
