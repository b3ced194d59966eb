"""Processes that are forked from one that has imported torch, for tests that kill and start them often."""

import multiprocessing

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["boundwatch.training", "boundwatch.tasks.navigation.train"])
