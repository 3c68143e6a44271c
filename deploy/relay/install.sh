#!/bin/sh
# Installs the program of a relay on a new instance, and starts its service.
# Usage: install.sh <url of the program> <its sha256> <engine>
# The variables RELAY_NODE_* replace the folder, the command that starts the service, and the pause, for tests.
set -eu
url=$1
sha256=$2
engine=$3
folder=${RELAY_NODE_FOLDER:-/opt/relay-node}
start=${RELAY_NODE_START:-systemctl enable --now relay-node.service}
pause_seconds=${RELAY_NODE_PAUSE_SECONDS:-5}
program=$folder/relay-node.mjs

# An instance that does not become ready is destroyed by the control plane, so attempts are not limited.
repeat() {
  until "$@"; do
    echo "relay-node: $1 failed, next attempt in $pause_seconds s" >&2
    sleep "$pause_seconds"
  done
}

# A prepared image has the packages, and starts faster.
list_missing_packages() {
  command -v curl >/dev/null || echo curl ca-certificates
  command -v node >/dev/null || echo nodejs
  case $engine in
    auto | srt-live-transmit) command -v srt-live-transmit >/dev/null || echo srt-tools ;;
  esac
}

install_packages() {
  apt-get update -q &&
    # shellcheck disable=SC2086 # one word per package
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 $packages
}

require_node() {
  version=$(node --version)
  major=${version#v}
  if [ "${major%%.*}" -lt 20 ]; then
    echo "relay-node: needs Node 20 or newer, and this image has $version" >&2
    exit 1
  fi
}

is_verified() {
  echo "$sha256  $1" | sha256sum --check --status 2>/dev/null
}

download() {
  curl --fail --silent --show-error --connect-timeout 10 --max-time 60 --retry 3 --output "$program.download" "$url" &&
    is_verified "$program.download" &&
    chmod 0644 "$program.download" &&
    mv "$program.download" "$program"
}

packages=$(list_missing_packages)
if [ -n "$packages" ]; then repeat install_packages; fi
require_node
mkdir -p "$folder"
if ! is_verified "$program"; then repeat download; fi
$start

# The relay needs ffmpeg for slates only, and finds it later. It is large, so no start waits for it.
install_ffmpeg() {
  command -v ffmpeg >/dev/null && return
  renice -n 19 -p $$ >/dev/null 2>&1 || true
  packages=ffmpeg
  install_packages || echo "relay-node: ffmpeg is not installed, so this relay shows no slates" >&2
}
case $engine in
  auto | srt-live-transmit) install_ffmpeg ;;
esac
