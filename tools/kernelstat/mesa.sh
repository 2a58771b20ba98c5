#!/bin/sh
# Unpacks Mesa of Debian 13's backports into a folder, with all libraries that it needs, and builds Mesa's no-op Intel
# kernel driver there. Its compilers then run on any x86-64 machine, whose own libraries stay as they are.
# Usage: mesa.sh FOLDER; then: go run ./tools/kernelstat -mesa FOLDER
# mesa.sha256 has versions and hashes. MIRROR=URL names another archive of Debian, where the machine's own has newer
# versions by now: a snapshot as of 2026-11-29.
# Needs Debian's apt and dpkg, gcc and python3, and 700 MB, of which 450 stay.
set -eu
list=$(cd "$(dirname "$0")" && pwd)/mesa.sha256
stub=usr/lib/x86_64-linux-gnu/libintel_noop_drm_shim.so
if [ "$1/$stub" -nt "$list" ] && [ "$1/$stub" -nt "$0" ]; then
    exit
fi
mkdir -p "$1/deb"
cd "$1"
if ! (cd deb && sha256sum --status -c "$list"); then
    mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/*$' | head -n 1)}
    mkdir -p apt/lists/partial apt/parts
    cat > apt/parts/debian.sources <<END
Types: deb deb-src
URIs: $mirror
Suites: trixie trixie-updates trixie-backports
Components: main
Architectures: amd64
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
    cat > apt/conf <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$PWD/apt/parts";
Dir::State::lists "$PWD/apt/lists";
Dir::State::status "/dev/null";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Check-Valid-Until "false";
APT::Sandbox::User "root";
END
    export APT_CONFIG="$PWD/apt/conf"
    apt-get -q update
    # The list has names as NAME_VERSION_ARCHITECTURE.deb, with %3a for a colon.
    # shellcheck disable=SC2046 # words
    (cd deb && apt-get -q download $(sed -n 's/%3a/:/; s/.* \([^_]*\)_\([^_]*\)_.*\.deb$/\1=\2/p' "$list") &&
        apt-get -q source --download-only --tar-only mesa=25.0.7-2+deb13u1 &&
        sha256sum --quiet -c "$list")
    rm -r apt
fi
for package in deb/*.deb; do dpkg -x "$package" .; done

# The stub may be of another version, because the driver asks it what it would ask a kernel: it is of Debian 13's own
# Mesa, which knows Intel's GPUs up to Xe3.
rm -rf mesa && mkdir -p mesa/made/intel/dev
tar xf deb/mesa_*.orig.tar.xz -C mesa --strip-components=1 --wildcards '*/include' '*/src/c11' '*/src/compiler/*.h' \
    '*/src/drm-shim' '*/src/intel/*' '*/src/util'
cd mesa
export PYTHONPATH="$PWD/../usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1
made=made/intel/dev
python3 src/intel/dev/intel_device_info_gen_h.py $made/intel_device_info_gen.h
python3 src/intel/dev/intel_device_info_serialize_gen_c.py $made/serialize.c
python3 src/intel/dev/gen_wa_helpers.py src/intel/dev/mesa_defs.json $made/intel_wa.h $made/intel_wa.c
sources="$made/serialize.c $made/intel_wa.c src/c11/impl/threads_posix.c src/drm-shim/device.c src/drm-shim/drm_shim.c
    src/intel/dev/i915/intel_device_info.c src/intel/dev/xe/intel_device_info.c src/intel/dev/intel_device_info.c
    src/intel/dev/intel_hwconfig.c src/intel/common/xe/intel_device_query.c src/intel/tools/intel_noop_drm_shim.c"
for name in anon_file blob hash_table log os_file os_misc parson ralloc set simple_mtx u_call_once u_debug u_printf \
    u_process vma; do
    sources="$sources src/util/$name.c"
done
# shellcheck disable=SC2086 # words
gcc -shared -O1 -fPIC -fvisibility=hidden -w -std=gnu11 -D_GNU_SOURCE -DNDEBUG -DHAVE_PTHREAD -DHAVE_STRUCT_TIMESPEC \
    -DHAVE_ENDIAN_H -DHAVE_MEMFD_CREATE -DHAVE_SECURE_GETENV -DHAVE___BUILTIN_UNREACHABLE -DHAVE_TIMESPEC_GET \
    -DHAVE_PROGRAM_INVOCATION_NAME -DHAVE_FUNC_ATTRIBUTE_PACKED -DHAVE_DL_ITERATE_PHDR -DUSE_GCC_ATOMIC_BUILTINS \
    -DDETECT_OS_LINUX=1 -DUTIL_ARCH_LITTLE_ENDIAN=1 -DUTIL_ARCH_BIG_ENDIAN=0 '-DPACKAGE_VERSION=""' \
    -Iinclude -Iinclude/drm-uapi -Isrc -Isrc/intel -Isrc/intel/common -Isrc/intel/dev -Isrc/util \
    -Imade -Imade/intel -I$made -I../usr/include -I../usr/include/libdrm \
    $sources -o ../$stub -Wl,-z,defs -ldl -lpthread -lm
cd .. && rm -r mesa
