"""The Kubernetes manifests: valid by its schemas, and in agreement with the service. No cluster is used here."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest
import yaml

from kcoord import __version__
from kcoord.config import Config
from kcoord.setting_table import BY_NAME
from kcoord.stack.run import ROLES
from kcoord.stack.server import GRACE_SECONDS
from tests.deploy.dockerfile import parse
from tests.support.processes import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.31", "1.34", "1.37")
Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    """All of them, each a fresh copy."""
    return [m for path in sorted(FOLDER.glob("*.yaml")) for m in yaml.safe_load_all(path.read_text())]


def name(manifest: Manifest) -> str:
    """Kind and name."""
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


ALL = {name(m): m for m in manifests()}
WITH_PODS = {key: m for key, m in ALL.items() if m["kind"] in ("Deployment", "Job")}
DEPLOYMENTS = {key: m for key, m in WITH_PODS.items() if m["kind"] == "Deployment"}


def pod(manifest: Manifest) -> Manifest:
    """The spec of its pods."""
    spec: Manifest = manifest["spec"]["template"]["spec"]
    return spec


def container(manifest: Manifest) -> Manifest:
    """Its only container."""
    (found,) = pod(manifest)["containers"]
    return dict(found)


SERVER = container(ALL["Deployment/kcoord-server"])
FIELDS = {"metadata.name": "kcoord-server-7c9f", "status.podIP": "10.1.2.3"}
"""What a pod knows of itself, as Kubernetes fills it in."""


def variables(described: Manifest) -> dict[str, str]:
    """The variables that a container sets itself, with a secret's value made up. A later one may name earlier ones."""
    found: dict[str, str] = {}
    for variable in described["env"]:
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            value = FIELDS[source["fieldRef"]["fieldPath"]]
        elif "secretKeyRef" in source:
            assert source["secretKeyRef"]["name"] == "kcoord", "secrets are referred to, never written here"
            value = "x" * 40
        else:
            value = re.sub(r"\$\((\w+)\)", lambda match: found[match[1]], variable["value"])
        found[variable["name"]] = value
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("key", ALL)
def test_it_is_valid(key: str, version: str) -> None:
    kubernetes_validate.validate(ALL[key], version, strict=True)


def test_an_unknown_field_is_noticed() -> None:
    broken = copy.deepcopy(ALL["Deployment/kcoord-server"])
    pod(broken)["terminationGracePeriod"] = 30
    with pytest.raises(kubernetes_validate.ValidationError, match="terminationGracePeriod"):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_every_role_has_its_pods_with_its_command_and_the_image_of_this_release() -> None:
    commands = {container(m)["name"]: container(m)["command"] for m in WITH_PODS.values()}
    assert commands == {role: ["python", "-m", "kcoord.stack.run", role] for role in ROLES}
    assert {container(m)["image"].rpartition(":")[2] for m in WITH_PODS.values()} == {__version__}


@pytest.mark.parametrize("key", WITH_PODS)
def test_its_environment_is_one_that_the_service_accepts(key: str) -> None:
    described = container(WITH_PODS[key])
    maps = [source["configMapRef"]["name"] for source in described.get("envFrom", [])]
    environment = {k: v for name in maps for k, v in ALL[f"ConfigMap/{name}"]["data"].items()}
    environment |= variables(described)
    assert Config.from_env(environment).problems == ()
    assert "KCOORD_DATABASE_URL" in environment
    assert ("KCOORD_SECRET_KEY" in environment) == ("server" in key or "worker" in key), "for cookies and receivers"


def test_each_server_has_a_name_and_an_address_of_its_own() -> None:
    assert ALL["Deployment/kcoord-server"]["spec"]["replicas"] > 1
    (described, shared) = (variables(SERVER), ALL["ConfigMap/kcoord"]["data"])
    assert described["KCOORD_NODE_ID"] == FIELDS["metadata.name"]
    assert (
        described["KCOORD_ADVERTISED_URL"] == f"http://{FIELDS['status.podIP']}:{SERVER['ports'][0]['containerPort']}"
    )
    assert not {"KCOORD_NODE_ID", "KCOORD_ADVERTISED_URL"} & set(shared), "the same for every pod"


def test_no_secret_is_in_the_files() -> None:
    assert {m["kind"] for m in ALL.values()} == {"ConfigMap", "Service", "Deployment", "PodDisruptionBudget", "Job"}
    secret = {setting.env for setting in BY_NAME.values() if setting.secret}
    assert not secret & set(ALL["ConfigMap/kcoord"]["data"])


@pytest.mark.parametrize("key", WITH_PODS)
def test_its_pods_have_no_rights(key: str) -> None:
    spec, own = pod(WITH_PODS[key]), container(WITH_PODS[key])["securityContext"]
    (user,) = (i.rest for i in parse((ROOT / "Dockerfile").read_text()) if i.word == "USER")
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == int(user)
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert own == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["enableServiceLinks"] is False, "a Service named kcoord would set KCOORD_PORT"


def test_what_service_links_would_set_is_refused() -> None:
    """Why enableServiceLinks must be off."""
    assert Config.from_env({"KCOORD_PORT": "tcp://10.96.0.7:80"}).problems
    assert Config.from_env({"KCOORD_SERVICE_HOST": "10.96.0.7"}).problems


def test_an_outage_of_postgres_restarts_nothing() -> None:
    asked = {kind: SERVER[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {kind: get["path"] for kind, get in asked.items()} == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }
    assert {get["port"] for get in asked.values()} == {"http"}
    for key in set(DEPLOYMENTS) - {"Deployment/kcoord-server"}:
        assert not [field for field in container(DEPLOYMENTS[key]) if field.endswith("Probe")], "they answer no HTTP"


@pytest.mark.parametrize("key", DEPLOYMENTS)
def test_it_is_given_time_to_stop(key: str) -> None:
    before = container(DEPLOYMENTS[key]).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
    delay = int(before[1]) if before else 0
    assert pod(DEPLOYMENTS[key])["terminationGracePeriodSeconds"] > delay + GRACE_SECONDS + 5
    if "server" in key:
        assert before[0] == "sleep"
        assert delay > 0, "endpoints forget a pod later than it stops listening"


def selected(manifest: Manifest) -> Iterator[str]:
    """The deployments whose pods a selector matches."""
    selector = manifest["spec"]["selector"]
    wanted = selector.get("matchLabels", selector).items()
    for key, deployment in DEPLOYMENTS.items():
        if wanted <= deployment["spec"]["template"]["metadata"]["labels"].items():
            yield key


def test_selectors_find_their_pods_and_no_others() -> None:
    assert list(selected(ALL["Service/kcoord"])) == ["Deployment/kcoord-server"]
    for key, deployment in DEPLOYMENTS.items():
        assert list(selected(deployment)) == [key]
        assert list(selected(ALL[key.replace("Deployment", "PodDisruptionBudget")])) == [key]
        (spread,) = pod(deployment)["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"] == deployment["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("key", DEPLOYMENTS)
def test_one_may_always_go_and_one_always_stays(key: str) -> None:
    least = ALL[key.replace("Deployment", "PodDisruptionBudget")]["spec"]["minAvailable"]
    assert DEPLOYMENTS[key]["spec"]["replicas"] > least >= 1
    assert DEPLOYMENTS[key]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_ports_are_those_of_the_configuration() -> None:
    assert SERVER["ports"] == [{"name": "http", "containerPort": BY_NAME["port"].default}]
    assert ALL["Service/kcoord"]["spec"]["ports"] == [{"name": "http", "port": 80, "targetPort": "http"}]


def test_the_page_names_the_files_and_the_keys_of_the_secret() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    sources = [v.get("valueFrom", {}) for m in WITH_PODS.values() for v in container(m)["env"]]
    keys = {source["secretKeyRef"]["key"] for source in sources if "secretKeyRef" in source}
    assert keys == set(re.findall(r"--from-(?:literal|file)=([a-z-]+)=", page))
    for path in FOLDER.glob("*.yaml"):
        assert f"deploy/kubernetes/{path.name}" in page
