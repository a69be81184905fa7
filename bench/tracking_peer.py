"""The MLflow side of bench/tracking.py, run by the interpreter of MLflow's own environment. One JSON object on stdout.

python tracking_peer.py PART URI ARGS…
"""

import json
import sys
import time
import uuid

KEYS = 100


def ingest(uri: str, points: str, batch: str = "1000") -> dict[str, float]:
    """Log points of 100 metrics by `log_batch`; seconds from the first call to the last answer."""
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    run = client.create_run(_experiment(client)).info.run_id
    client.log_batch(run, metrics=[Metric("warm", 0.0, 0, 0)])
    total, size = int(points), int(batch)
    began, cpu = time.perf_counter(), time.process_time()
    for start in range(0, total, size):
        stamp = int(time.time() * 1000)
        client.log_batch(
            run,
            metrics=[
                Metric(f"metric/{at % KEYS}", 1.0 / (at + 1), stamp, at // KEYS)
                for at in range(start, min(start + size, total))
            ],
        )
    return {"wall_s": time.perf_counter() - began, "client_cpu_s": time.process_time() - cpu}


def history(uri: str, run: str, key: str) -> dict[str, float]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    client.get_run(run)
    began = time.perf_counter()
    found = client.get_metric_history(run, key)
    return {"wall_s": time.perf_counter() - began, "points": len(found)}


def search(uri: str, experiment: str, filter_string: str, order: str) -> dict[str, float]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    client.get_experiment(experiment)
    began = time.perf_counter()
    found = client.search_runs([experiment], filter_string, order_by=[order], max_results=100)
    return {"wall_s": time.perf_counter() - began, "runs": len(found)}


def seed(database: str, runs: str, points: str) -> dict[str, object]:
    """Write runs with points straight into MLflow's tables: logging them would take hours. Each has loss, acc, lr."""
    import sqlalchemy as sa

    engine = sa.create_engine(database)
    meta = sa.MetaData()
    meta.reflect(engine)
    table = meta.tables
    now = int(time.time() * 1000)
    idents = [uuid.uuid4().hex for _ in range(int(runs))]
    with engine.begin() as connection:
        experiment = connection.execute(sa.select(sa.func.min(table["experiments"].c.experiment_id))).scalar()
        for start in range(0, len(idents), 1000):
            part = list(enumerate(idents))[start : start + 1000]
            connection.execute(table["runs"].insert(), [
                {"run_uuid": run, "name": f"run-{at}", "status": "FINISHED", "start_time": now + at, "end_time": now + at + 1,
                 "lifecycle_stage": "active", "experiment_id": experiment, "source_type": "LOCAL", "user_id": "bench",
                 "source_name": "", "source_version": "", "entry_point_name": "", "artifact_uri": ""}
                for at, run in part
            ])  # fmt: skip
            connection.execute(table["params"].insert(), [
                {"key": "lr", "value": ("0.001", "0.01", "0.1")[at % 3], "run_uuid": run} for at, run in part
            ])  # fmt: skip
            connection.execute(table["latest_metrics"].insert(), [
                {"key": key, "value": value(at), "timestamp": now, "step": 1, "is_nan": False, "run_uuid": run}
                for at, run in part for key, value in (("loss", lambda n: (n * 7919 % 100_003) / 100_003), ("acc", lambda n: n / 1e6))
            ])  # fmt: skip
            count = int(points)
            for _, run in part if count else []:
                connection.execute(table["metrics"].insert(), [
                    {"key": "curve", "value": (step * 7919 % 10_007) / 10_007, "timestamp": now + step, "step": step,
                     "is_nan": False, "run_uuid": run}
                    for step in range(count)
                ])  # fmt: skip
    return {"experiment": str(experiment), "runs": idents[:100]}


def _experiment(client: object) -> str:
    return client.create_experiment(f"bench-{uuid.uuid4().hex[:8]}")  # type: ignore[attr-defined]


if __name__ == "__main__":
    part, *given = sys.argv[1:]
    print(json.dumps({"ingest": ingest, "history": history, "search": search, "seed": seed}[part](*given)))
