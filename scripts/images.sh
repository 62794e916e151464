#!/bin/sh
# Builds images: images.sh VENV [KIND...]   (KIND: a folder of images/; default cpu)
#
# cpu, cuda and rocm are the default images of tasks; master and agent are those of docker-compose.yml. The wheels are
# downloaded here, by the constraints of this checkout, into .cache/wheels; the Dockerfiles install from that folder and
# need no network. DETENT_BASE_IMAGE replaces the image that they start from. DETENT_TORCH_INDEX is the address of a
# package index that has torch for the GPUs of `cuda` or `rocm`, where pip's own does not.
set -eu
venv=$1
shift
[ $# -gt 0 ] || set -- cpu
version=$(sed -n 's/^DETENT_VERSION = "\(.*\)"/\1/p' launch/determined_launch/version.py)
for kind in "$@"; do
    wheels=.cache/wheels/$kind
    folder=.cache/images/$kind
    rm -rf "$folder"
    mkdir -p "$wheels" "$folder/wheels"
    case $kind in
        master | agent) "$venv/bin/python" -m build -q --wheel --outdir "$folder/wheels" . ;;
    esac
    "$venv/bin/python" scripts/image_requirements.py "$kind" >"$folder/requirements.txt"
    cp constraints.txt "images/$kind/Dockerfile" "$folder/"
    # Downloaded for the Python of the image; a wheel that is here already is not fetched again.
    "$venv/bin/python" -m pip download -q --disable-pip-version-check --only-binary=:all: --find-links "$wheels" \
        --find-links "$folder/wheels" ${DETENT_TORCH_INDEX:+--extra-index-url "$DETENT_TORCH_INDEX"} -d "$wheels" \
        -c constraints.txt -r "$folder/requirements.txt"
    rm -f "$wheels"/detent_cluster-*.whl # the checkout's own is built each time
    for wheel in "$wheels"/*.whl; do ln "$wheel" "$folder/wheels/"; done
    docker build -q -t "detent/$kind:$version" ${DETENT_BASE_IMAGE:+--build-arg BASE="$DETENT_BASE_IMAGE"} "$folder"
done
