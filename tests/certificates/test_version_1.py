"""Certificates and families that an earlier release wrote: read as they are, and still the same."""

import json
from pathlib import Path

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.errors import CertificateError, SchemaMismatch

FILES = Path(__file__).parent / "version_1"
FINGERPRINTS = json.loads((FILES / "fingerprints.json").read_text())
COSTS = np.loadtxt(FILES / "betting.csv", skiprows=1)


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_a_certificate_keeps_its_fingerprint_and_its_file(name, tmp_path):
    certificate = bw.Certificate.load(FILES / f"{name}.json")
    assert certificate.schema_version == 1
    assert certificate.fingerprint == FINGERPRINTS[name]
    assert (certificate.record, certificate.cost_range) == (None, None)
    certificate.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (FILES / f"{name}.json").read_bytes()


def test_its_limits_are_derived_again_from_the_costs():
    certificate = bw.Certificate.load(FILES / "betting.json")
    assert all(check.ok for check in certificate.verify(COSTS))
    assert "limits" in {check.name for check in certificate.verify()}  # without them only their order
    assert not all(check.ok for check in certificate.verify(1 - COSTS))


def test_a_family_is_read():
    family = bw.CertificateFamily.load(FILES / "family.json")
    assert family["pick"] is family["again"]
    assert family["place"].fingerprint == FINGERPRINTS["exact"]


def test_what_came_later_does_not_go_into_an_old_file():
    content = json.loads((FILES / "betting.json").read_text())
    with pytest.raises(SchemaMismatch, match="cost_range is not a field of schema 1"):
        bw.Certificate.from_dict(content | {"cost_range": None})
    with pytest.raises(SchemaMismatch, match="record is missing"):
        bw.Certificate.from_dict(content | {"schema_version": 2, "cost_range": None})
    with pytest.raises(CertificateError, match="upper"):
        bw.Certificate.from_dict(json.loads((FILES / "exact.json").read_text()) | {"upper": 0.9})
