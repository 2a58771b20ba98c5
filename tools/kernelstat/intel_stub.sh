#!/bin/sh
# Builds Mesa's no-op Intel kernel driver (src/intel/tools/intel_noop_drm_shim.c), with which Mesa's Intel compiler runs
# on any machine.
# Usage: intel_stub.sh FOLDER; writes FOLDER/libintel_noop.so, for: go run ./tools/kernelstat -intel-stub
# FOLDER/libintel_noop.so
# The source must be of the version of the installed mesa-vulkan-drivers, because the two share structs. Tried with
# Debian 12 (Mesa 22.3.6).
# Needs gcc and apt; installs nothing.
set -eu
mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial" "$1/o"
cd "$1"
version=$(dpkg-query -W -f '${source:Version}' mesa-vulkan-drivers)
# The machine's own Debian sources, with source packages.
mkdir -p apt/parts
for f in /etc/apt/sources.list.d/debian*.sources; do
    [ -f "$f" ] && sed 's/^Types:.*/Types: deb deb-src/' "$f" > "apt/parts/${f##*/}"
done
if [ -f /etc/apt/sources.list ]; then
    sed -n 's/^deb \(.*\)/deb \1\ndeb-src \1/p' /etc/apt/sources.list > apt/parts/main.list
fi
apt() {
    apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$PWD/apt/parts" \
        -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" -o APT::Sandbox::User=root "$@"
}
apt update
apt source --download-only "mesa=$version"
apt download libdrm-dev
dpkg -x libdrm-dev_*.deb deb
rm -rf mesa && mkdir mesa
tar xf mesa_*.orig.tar.* -C mesa --strip-components=1
cd mesa
flags="-O1 -fPIC -w -std=gnu11 -D_GNU_SOURCE -DNDEBUG -DHAVE_PTHREAD
    -DHAVE_STRUCT_TIMESPEC -DHAVE_ENDIAN_H -DHAVE_MEMFD_CREATE
    -DHAVE_SECURE_GETENV -DHAVE___BUILTIN_UNREACHABLE -DHAVE_TIMESPEC_GET -DHAVE_FUNC_ATTRIBUTE_PACKED
    -DHAVE_DL_ITERATE_PHDR
    -DUSE_GCC_ATOMIC_BUILTINS -DUTIL_ARCH_LITTLE_ENDIAN=1 -DUTIL_ARCH_BIG_ENDIAN=0 -DPACKAGE_VERSION=\"$version\"
    -Iinclude -Iinclude/drm-uapi -Isrc -Isrc/intel -Isrc/util -Isrc/mapi -Isrc/mesa
    -Isrc/gallium/include -Isrc/gallium/auxiliary
    -I../deb/usr/include -I../deb/usr/include/libdrm"
sources="intel/tools/intel_noop_drm_shim drm-shim/device drm-shim/drm_shim intel/dev/intel_device_info
    intel/dev/intel_hwconfig intel/common/intel_gem intel/common/intel_engine c11/impl/threads_posix c11/impl/time"
for name in hash_table set ralloc vma anon_file debug u_debug log os_misc os_file simple_mtx u_call_once u_printf dag \
    os_time bitscan rwlock strtod memstream u_math blob u_cpu_detect u_process u_dynarray u_thread; do
    sources="$sources util/$name"
done
for name in $sources; do
    # Files come and go between versions; what is missing and needed, the linker names.
    if [ -f "src/$name.c" ]; then
        # shellcheck disable=SC2086 # flags are words
        gcc $flags -c "src/$name.c" -o "../o/$(echo "$name" | tr / _).o"
    fi
done
gcc -shared -o ../libintel_noop.so ../o/*.o -ldl -lpthread -lm
echo "$1/libintel_noop.so"
