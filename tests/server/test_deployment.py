"""What is deployed: the files for compose, Docker, Prometheus and Grafana fit the server."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from boundwatch._version import __version__
from boundwatch.demo.drones import fill, load_flights
from boundwatch.server.settings import Settings


def test_what_is_deployed_knows_the_metrics_and_options(sqlite):
    import yaml

    from boundwatch.server.metrics import collect

    fill(sqlite, load_flights(), 2)
    with sqlite.read() as connection:
        known = set(re.findall(r"^(boundwatch_\w+)", "".join(collect(connection)), re.M))
    folder = Path(__file__).parents[2] / "deploy"
    texts = "".join((folder / name).read_text() for name in ("alerts.yml", "grafana.json"))
    used = set(re.findall(r"boundwatch_\w+", texts))
    assert used <= known
    assert len(used) >= 5
    assert json.loads((folder / "grafana.json").read_text())["panels"]
    monitor = yaml.safe_load((folder / "compose.yaml").read_text())["services"]["monitor"]
    settings = Settings.gather({}, monitor["environment"])
    assert (settings.workers, settings.allow_host, settings.silent_minutes) == (2, ("monitor",), 30.0)
    _check_compose(folder, yaml.safe_load((folder / "compose.yaml").read_text()))
    _check_dockerfile(folder)
    rules = yaml.safe_load((folder / "alerts.yml").read_text())["groups"][0]["rules"]
    assert all(rule["expr"] and rule["annotations"]["summary"] for rule in rules)


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    import yaml

    root = Path(__file__).parents[2]
    recipe = yaml.safe_load((root / "deploy" / "conda" / "recipe.yaml").read_text())
    project = tomllib.loads((root / "pyproject.toml").read_text())
    asked = [f"python{project['project']['requires-python']}", *project["project"]["dependencies"]]
    assert [each.replace(" ", "") for each in recipe["requirements"]["run"]] == asked
    assert project["build-system"]["requires"] == [recipe["requirements"]["host"][-1].replace(" ", "")]
    assert recipe["context"]["version"] == __version__
    name, _, called = recipe["build"]["python"]["entry_points"][0].partition(" = ")
    assert project["project"]["scripts"] == {name: called}


def _check_compose(folder, compose):
    """Check what `docker compose config` and the first start would: references, files and volumes."""
    services = compose["services"]
    assert set(compose) == {"services", "volumes"}
    made = re.findall(r"> (\S+)", (folder / "compose.yaml").read_text())  # by the commands in its header
    for service in services.values():
        assert ("image" in service) != ("build" in service)
        needs = service.get("depends_on", {})
        for name in needs:
            assert name in services
            if isinstance(needs, dict) and needs[name]["condition"] == "service_healthy":
                assert services[name]["healthcheck"]["test"]
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (folder / source).is_file() or source[2:] in made
            else:
                assert source in compose["volumes"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    build = services["monitor"]["build"]
    assert (folder / build["context"] / build["dockerfile"]).samefile(folder / "Dockerfile")


def _check_dockerfile(folder):
    lines = (folder / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    copied = [word for name, rest in steps if name == "COPY" for word in rest.split()[:-1]]
    assert all((folder.parent / name).exists() for name in copied)
    let_through = (folder / "Dockerfile.dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in copied} == {line for line in let_through if line.startswith("!")}
    settled = dict(steps)
    assert settled["USER"] == "monitor"
    assert json.loads(settled["ENTRYPOINT"]) == ["boundwatch"]
    assert json.loads(settled["CMD"])[0] == "serve"
    assert "constraints.txt" in settled["RUN"]
