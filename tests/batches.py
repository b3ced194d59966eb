"""What the batches of a source hold."""


def texts(batches):
    return [line.raw.decode() for batch in batches for line in batch.lines]


def faults(batches):
    return [(line.number, line.fault) for batch in batches for line in batch.lines if line.fault]
