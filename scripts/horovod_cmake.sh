#!/bin/sh
# The cmake that horovod 0.28.1 is built with (its setup.py calls $HOROVOD_CMAKE): torch of today needs C++ 20, which
# horovod's own files pin to 14, and its bundled gloo asks for a policy that newer cmakes have dropped.
case "${1:-}" in
--version | --build) exec cmake "$@" ;;
esac
for file in "$1/CMakeLists.txt" "$1/horovod/torch/CMakeLists.txt"; do
    sed -i 's/\(CMAKE_CXX_STANDARD\) 14/\1 20/' "$file"
done
sed -i '1i set(CMAKE_UNITY_BUILD ON)\nset(CMAKE_UNITY_BUILD_BATCH_SIZE 8)' "$1/horovod/torch/CMakeLists.txt"
exec cmake "$@" -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_CXX_FLAGS_RELWITHDEBINFO='-O1 -DNDEBUG'
