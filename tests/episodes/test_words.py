"""What the names of columns promise, in the languages whose yes and no are read."""

import pytest

from boundwatch.episodes import read_costs
from boundwatch.episodes.words import sense
from boundwatch.errors import InvalidSetting

BAD = """
Fehlschlag Fehlschläge fehlgeschlagen Greiffehler Fehlgriff Misserfolg Misserfolge gescheitert Abbruch
Abbrüche Kollision Absturz Abstürze erfolglos misslungen échec Échecs échoué raté ratée erreur fallo fallos
fracaso error colisión fallido fallito errore fallimento falha mislukt gefaald fout fejl failing failed errors
crashed collision colliding dropped drop missed aborting timeout unsuccessful unsuccessfully num_failures 失败
"""
GOOD = """
Erfolg Erfolgsrate erfolgreich Greiferfolg geschafft gelungen succès succes réussi réussie éxito exito exitoso
logrado successo riuscito riuscita sucesso geslaagd gelukt success_rate successfully mission_success
failure-free fehlerfrei fehlerlos kollisionsfrei 成功
"""
OPEN = [
    "mission",
    "rate",
    "no_collision",
    "nicht erfolgreich",
    "ohne Fehler",
    "successive",
    "fallback",
    "grip",
]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *((name, "bad") for name in BAD.split()),
        *((name, "good") for name in GOOD.split()),
        *((name, None) for name in OPEN),
    ],
)
def test_stems_of_names(name, said):
    assert sense(name) == sense(name.upper()) == said


def test_a_failure_is_not_read_as_a_success(tmp_path):
    (tmp_path / "x.csv").write_text("Fehlschlag\nja\nnein\n", encoding="utf-8")
    with pytest.raises(InvalidSetting, match="'Fehlschlag' sounds like something bad"):
        read_costs(tmp_path / "x.csv", success="Fehlschlag")
    assert read_costs(tmp_path / "x.csv", cost="Fehlschlag").costs.tolist() == [1, 0]
