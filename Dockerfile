# The program in an image of its own, from its Debian package.
#
#   make image         fedsmooth:0.2.0, for CPU cores
#   make image-cuda    fedsmooth:0.2.0-cuda, for a GPU (run it with --gpus all)
#
#   docker run --rm -v "$PWD:/work" fedsmooth:0.2.0 train e.toml --out runs/e
ARG BUILD_IMAGE=debian:12-slim
ARG RUN_IMAGE=debian:12-slim

FROM ${BUILD_IMAGE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
COPY . /src
WORKDIR /src
RUN make package

# cudart is linked in: a GPU's driver comes from the machine, nothing of CUDA from here.
FROM ${RUN_IMAGE}
COPY --from=build /src/build/packages/fedsmooth_*.deb /tmp/
RUN apt-get update && apt-get install -y --install-recommends /tmp/fedsmooth_*.deb \
  && rm -rf /tmp/fedsmooth_*.deb /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["fedsmooth"]
