"""Two policies that are not there: simulated outcomes for an evaluation that was started."""

import sys

import numpy as np

import boundwatch as bw

SUCCESS = {"act": {"mug": 0.55, "bowl": 0.35}, "dp": {"mug": 0.85, "bowl": 0.65}}
luck = np.random.default_rng(7)

with bw.Evaluation.open(sys.argv[1]) as evaluation:
    while (trial := evaluation.next()) is not None:
        policy = evaluation.policy_of(trial)  # a program has to know; people see trial.policy, a letter
        worn = 0.2 * trial.number / trial.most_trials  # the gripper wears out over the afternoon
        evaluation.record(trial, success=bool(luck.random() < SUCCESS[policy][trial.task] - worn))
    print(evaluation)
