# The image of every Airflow service and worker: Airflow, Corpusmill and its DAGs, from the lock file.
# It is without torch, so of the neural models it judges with those that were converted for CTranslate2 before;
# for all of them: docker build --build-arg TORCH=torch==2.13.0
FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 UV_LINK_MODE=copy
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc g++ \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/corpusmill/app
RUN python -m venv /opt/corpusmill/venv && /opt/corpusmill/venv/bin/pip install uv==0.13.9
# Dependencies first: a change of the code does not install them again.
COPY requirements.lock ./
RUN /opt/corpusmill/venv/bin/uv pip install --python /opt/corpusmill/venv/bin/python --no-deps --require-hashes -r requirements.lock
ARG TORCH=""
RUN if [ -n "$TORCH" ]; then /opt/corpusmill/venv/bin/pip install "$TORCH"; fi
COPY pyproject.toml README.md ./
COPY curation ./curation
COPY tokenization ./tokenization
COPY quality_models ./quality_models
COPY dags ./dags
COPY deploy ./deploy
RUN /opt/corpusmill/venv/bin/uv pip install --python /opt/corpusmill/venv/bin/python --no-deps -e . \
 && /opt/corpusmill/venv/bin/python -m compileall -q /opt/corpusmill/app

FROM python:3.11-slim-bookworm
# numba's OpenMP layer loads libgomp.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 50000 --gid 0 --create-home corpusmill \
 && mkdir -p /opt/corpusmill/airflow /opt/corpusmill/auth /opt/corpusmill/kernels /data \
 && chown -R 50000:0 /opt/corpusmill /data
COPY --from=build /opt/corpusmill/venv /opt/corpusmill/venv
COPY --from=build /opt/corpusmill/app /opt/corpusmill/app
ENV PATH=/opt/corpusmill/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    AIRFLOW_HOME=/opt/corpusmill/airflow \
    NUMBA_CACHE_DIR=/opt/corpusmill/kernels
USER 50000
WORKDIR /opt/corpusmill/airflow
# Compiles the kernels, so that no worker has to, and shows that the image works.
RUN python -m curation.text && for filter in language rules perplexity safety_terms safety_model; do python -m curation.filters.$filter || exit 1; done \
 && python -m tokenization \
 && printf '{"id": "1", "text": "%s"}\n' "A sentence of a few words. 一句话。" > /tmp/one.jsonl \
 && corpusmill run web --input /tmp/one.jsonl --root /tmp/runs --workers 1 --quiet \
 && rm -rf /tmp/one.jsonl /tmp/runs
CMD ["airflow", "version"]
