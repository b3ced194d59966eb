"""Predict what a trial will cost from its scene: a critic, a simulated twin, a value function.

Each predictor maps scenes to numbers in [0, 1]. None is trusted: `boundwatch.PredictedTest` stays valid
whatever they say. `SceneWatch` compares the predictions alone and never gives a verdict.
"""

from boundwatch.prediction.critic import train_critic
from boundwatch.prediction.predictor import Predictor, calibrate
from boundwatch.prediction.scenes import SceneNotice, SceneWatch
from boundwatch.prediction.twin import Twin
from boundwatch.prediction.value import value_function

__all__ = [
    "Predictor",
    "SceneNotice",
    "SceneWatch",
    "Twin",
    "calibrate",
    "train_critic",
    "value_function",
]
