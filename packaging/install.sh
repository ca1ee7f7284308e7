#!/bin/sh
# Installs Pinion, a headless coding agent, from the files of a release.
#
#     curl -fsSL https://github.com/pinion-agent/pinion/releases/latest/download/install.sh | sh
#     ... | sh -s -- --prefix ~/.local --pi
#     sh install.sh --uninstall
#
# The script downloads a tarball, its checksum and the signature of the checksums, checks both, and copies the files below
# the prefix. It needs curl or wget, tar, sha256sum or shasum, and ssh-keygen, which checks the signature.
set -eu

version="@VERSION@"
# Who signs releases, in the format of an "allowed signers" file of OpenSSH.
signer='@SIGNER@'
base=${PINION_BASE_URL:-https://github.com/pinion-agent/pinion/releases/download/v$version}
prefix=${PINION_PREFIX:-$HOME/.local}
target=${PINION_TARGET:-}
action=install
pi=no
signature=yes

usage() {
    cat <<'EOF'
Usage: install.sh [options]

  --prefix DIR      Install below DIR (default: ~/.local)
  --pi              Also link the program as "pi"; stops if there is a "pi" already
  --target TRIPLE   Install the program for TRIPLE (default: found out)
  --no-signature    Check the checksum but not its signature
  --uninstall       Remove what this script installed below the prefix
  --help            Show this text
EOF
}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

while [ $# -gt 0 ]; do
    case $1 in
        --prefix) [ $# -ge 2 ] || fail "--prefix needs a directory"; prefix=$2; shift ;;
        --target) [ $# -ge 2 ] || fail "--target needs a target triple"; target=$2; shift ;;
        --pi) pi=yes ;;
        --no-signature) signature=no ;;
        --uninstall) action=uninstall ;;
        --help | -h) usage; exit 0 ;;
        *) usage >&2; fail "unknown option $1" ;;
    esac
    shift
done
case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac
list=$prefix/share/pinion/installed-files

# Removes the files that the last installation listed, and directories that are empty afterwards.
remove_files() {
    while IFS= read -r file; do
        case $file in
            /* | *..*) fail "$list has a path that is not ours: $file" ;;
        esac
        rm -f "$prefix/$file"
        dir=$(dirname "$file")
        while [ "$dir" != . ]; do
            rmdir "$prefix/$dir" 2>/dev/null || break
            dir=$(dirname "$dir")
        done
    done <"$1"
}

if [ "$action" = uninstall ]; then
    [ -f "$list" ] || fail "$prefix has no Pinion that this script installed: $list is missing"
    copy=$(mktemp)
    cp "$list" "$copy"
    remove_files "$copy"
    rm -f "$copy"
    echo "Pinion is removed from $prefix. Settings, keys and sessions stay in ~/.pi/agent."
    exit 0
fi

find_target() {
    system=$(uname -s)
    machine=$(uname -m)
    case $machine in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) fail "there is no program for the processor $machine; build Pinion with: cargo install --locked pinion" ;;
    esac
    case $system in
        Darwin) echo "$machine-apple-darwin" ;;
        Linux)
            # Everything but a GNU C library gets the static program.
            if have getconf && getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
                echo "$machine-unknown-linux-gnu"
            else
                echo "$machine-unknown-linux-musl"
            fi
            ;;
        *) fail "there is no program for $system; build Pinion with: cargo install --locked pinion" ;;
    esac
}

download() {
    if have curl; then
        curl -fsSL --retry 3 -o "$2" "$1" || fail "cannot download $1"
    elif have wget; then
        wget -q -O "$2" "$1" || fail "cannot download $1"
    else
        fail "this needs curl or wget"
    fi
}

sha256() {
    if have sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif have shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    else
        fail "this needs sha256sum or shasum"
    fi
}

check_signature() {
    [ -n "$signer" ] || fail "this copy of install.sh has no key to check signatures with; take the one of a release, or use --no-signature"
    have ssh-keygen || fail "ssh-keygen is missing, which checks the signature (package openssh-client); or use --no-signature"
    echo "$signer" >"$work/signers"
    ssh-keygen -q -Y verify -f "$work/signers" -I release@pinion -n pinion-release -s "$work/SHA256SUMS.sig" \
        <"$work/SHA256SUMS" >/dev/null 2>"$work/verify" || fail "the signature of $base/SHA256SUMS is wrong: $(cat "$work/verify")"
}

[ -n "$target" ] || target=$(find_target)
name=pinion-$version-$target
if [ "$pi" = yes ] && { [ -e "$prefix/bin/pi" ] || [ -L "$prefix/bin/pi" ]; } && [ "$(readlink "$prefix/bin/pi")" != pinion ]; then
    fail "$prefix/bin/pi exists and is not ours; remove it first or leave out --pi"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "Downloading $base/$name.tar.gz"
download "$base/SHA256SUMS" "$work/SHA256SUMS"
if [ "$signature" = yes ]; then
    download "$base/SHA256SUMS.sig" "$work/SHA256SUMS.sig"
    check_signature
fi
wanted=$(awk -v name="$name.tar.gz" '$2 == name { print $1 }' "$work/SHA256SUMS")
[ -n "$wanted" ] || fail "release $version has no $name.tar.gz; build Pinion with: cargo install --locked pinion"
download "$base/$name.tar.gz" "$work/$name.tar.gz"
found=$(sha256 "$work/$name.tar.gz")
[ "$found" = "$wanted" ] || fail "$name.tar.gz has the checksum $found, not $wanted"

tar -xzf "$work/$name.tar.gz" -C "$work"
"$work/$name/bin/pinion" --version >/dev/null || fail "the program for $target does not run on this system; try --target $(uname -m)-unknown-linux-musl"
(cd "$work/$name" && find . -type f | sed 's|^\./||') >"$work/files"
if [ "$pi" = yes ]; then echo bin/pi >>"$work/files"; fi
echo share/pinion/installed-files >>"$work/files"
# Files of the version before, which this one may not have.
if [ -f "$list" ]; then cp "$list" "$work/old" && remove_files "$work/old"; fi
mkdir -p "$prefix"
(cd "$work/$name" && tar -cf - .) | tar -xf - -C "$prefix" --no-same-owner
if [ "$pi" = yes ]; then ln -sf pinion "$prefix/bin/pi"; fi
mkdir -p "$(dirname "$list")"
cp "$work/files" "$list"

echo "Installed $("$prefix/bin/pinion" --version) below $prefix"
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "Add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo "Try: pinion -p \"List the files in this directory\""
