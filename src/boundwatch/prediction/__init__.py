"""Predict what a trial will cost from its scene: a critic, a simulated twin, a value function.

Each predictor maps scenes to numbers in [0, 1]. None is trusted: `boundwatch.PredictedTest` stays valid
whatever they say. `SceneWatch` compares the predictions alone and never gives a verdict.
"""

from boundwatch.prediction.likeness import SceneNotice, SceneWatch
from boundwatch.prediction.predictor import Predictor, Twin, calibrate, train_critic, value_function

__all__ = ["Predictor", "SceneNotice", "SceneWatch", "Twin", "calibrate", "train_critic", "value_function"]
