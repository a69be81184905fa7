"""With an unmodified MLflow client: models logged, registered, found by alias, loaded; scikit-learn's autolog. Prints what it read."""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import mlflow
import mlflow.sklearn
import numpy as np
from mlflow.exceptions import MlflowException
from sklearn.linear_model import LinearRegression, LogisticRegression

client = mlflow.MlflowClient()
said: dict[str, object] = {"version": mlflow.__version__}
mlflow.set_experiment("models")
x = np.array([[1.0], [2.0], [3.0]])
model = LinearRegression().fit(x, np.array([2.0, 4.0, 6.0]))

with mlflow.start_run(run_name="trainer") as run:
    logged = mlflow.sklearn.log_model(model, name="linear", input_example=x, registered_model_name="Price model")
    mlflow.log_metric("rmse", 0.5, model_id=logged.model_id)
said["logged"] = client.get_logged_model(logged.model_id).status.value
assert [one.model_id for one in client.get_run(run.info.run_id).outputs.model_outputs] == [logged.model_id]
measured = client.get_logged_model(logged.model_id).metrics
assert [(one.key, one.value) for one in measured] == [("rmse", 0.5)]

version = mlflow.register_model(f"models:/{logged.model_id}", "Price model")
said["second"] = [version.version, version.status, version.run_id == run.info.run_id]
third = mlflow.register_model(f"runs:/{run.info.run_id}/linear", "Price model")
said["third"] = third.version
client.set_registered_model_alias("Price model", "champion", version.version)
said["alias"] = client.get_model_version_by_alias("Price model", "champion").version
for uri in (
    "models:/Price model@champion",
    "models:/Price model/1",
    f"models:/{logged.model_id}",
    f"runs:/{run.info.run_id}/linear",
):
    loaded = mlflow.pyfunc.load_model(uri)
    assert abs(float(loaded.predict(np.array([[4.0]]))[0]) - 8.0) < 1e-9, uri
assert mlflow.sklearn.load_model("models:/Price model/latest").coef_.shape == (1,)
said["download"] = client.get_model_version_download_uri("Price model", "2").split(":")[0]
client.delete_registered_model_alias("Price model", "champion")
try:
    client.get_model_version_by_alias("Price model", "champion")
    raise AssertionError("an alias that is gone was found")
except MlflowException as refused:
    said["no_alias"] = refused.error_code
try:
    client.create_registered_model("Price model")
    raise AssertionError("made twice")
except MlflowException as refused:
    said["twice"] = refused.error_code

client.set_registered_model_tag("Price model", "task", "regression")
client.update_registered_model("Price model", description="prices")
client.set_model_version_tag("Price model", "1", "checked", "yes")
client.update_model_version("Price model", "1", description="the first")
found = client.get_registered_model("Price model")
said["registered"] = [found.description, found.tags, sorted(one.version for one in found.latest_versions)]
one = client.get_model_version("Price model", "1")
said["one"] = [one.description, one.tags]
client.delete_model_version_tag("Price model", "1", "checked")
client.delete_registered_model_tag("Price model", "task")
said["versions"] = [
    one.version for one in client.search_model_versions("name = 'Price model'", order_by=["version_number ASC"])
]
said["by_run"] = len(client.search_model_versions(f"run_id = '{run.info.run_id}'"))
said["models"] = [one.name for one in client.search_registered_models("name ILIKE 'price%'")]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    said["stage"] = client.transition_model_version_stage("Price model", "3", "Production").current_stage
    said["in_stage"] = [one.version for one in client.get_latest_versions("Price model", ["Production"])]
copied = client.copy_model_version("models:/Price model/1", "Copied")
said["copied"] = [copied.name, copied.version]
assert mlflow.pyfunc.load_model("models:/Copied/1").predict(x).shape == (3,)
client.delete_model_version("Price model", "3")
said["left"] = sorted(one.version for one in client.search_model_versions("name = 'Price model'"))
client.rename_registered_model("Price model", "Prices")
said["renamed"] = client.get_registered_model("Prices").name
client.delete_registered_model("Prices")
said["gone"] = [one.name for one in client.search_registered_models()]
client.create_registered_model("Prices")
said["back"] = client.get_registered_model("Prices").name
searched = mlflow.search_logged_models(
    experiment_ids=[run.info.experiment_id], filter_string="metrics.rmse < 1 AND name = 'linear'", output_format="list"
)
said["searched"] = [one.name for one in searched]
client.set_logged_model_tags(logged.model_id, {"a": "b"})
client.delete_logged_model_tag(logged.model_id, "a")
client.log_model_params(logged.model_id, {"depth": "3"}) if hasattr(client, "log_model_params") else None
extra = client.create_logged_model(run.info.experiment_id, name="bare", params={f"p{at}": str(at) for at in range(150)})
client.finalize_logged_model(extra.model_id, "FAILED")
said["bare"] = [
    client.get_logged_model(extra.model_id).status.value,
    len(client.get_logged_model(extra.model_id).params),
]
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "empty").touch()
    client.log_model_artifacts(extra.model_id, folder)
said["bare_files"] = [(one.path, one.file_size) for one in client.list_logged_model_artifacts(extra.model_id)]
client.delete_logged_model(extra.model_id)

mlflow.sklearn.autolog()
with mlflow.start_run(run_name="auto") as auto:
    LogisticRegression(C=0.25).fit(np.arange(20.0).reshape(-1, 1), np.array([0, 1] * 10))
mlflow.sklearn.autolog(disable=True)
seen = client.get_run(auto.info.run_id)
said["auto"] = [seen.data.params["C"], sorted(seen.data.metrics), seen.info.status]
said["auto_models"] = len(seen.outputs.model_outputs)
said["auto_files"] = sorted(one.path for one in client.list_artifacts(auto.info.run_id))
reloaded = mlflow.pyfunc.load_model(f"runs:/{auto.info.run_id}/model")
assert reloaded.predict(np.array([[1.0]])).shape == (1,)
said["run"] = run.info.run_id
Path(sys.argv[1]).write_text(json.dumps(said, ensure_ascii=False))
