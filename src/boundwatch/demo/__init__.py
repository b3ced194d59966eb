"""The whole flow on the drone: train, certify, deploy in five worlds, judge with every detector, report.

Open `flow` first; `drawings` draws, `result_page` puts the page together. `drones` is the monitor's demo.
"""
