#!/usr/bin/env bash
# Installs Slurm for the test that runs on a real cluster of one machine. Without it, that test says
# so and is skipped. The test starts the daemons itself.
set -euo pipefail

command -v slurmctld >/dev/null && command -v munged >/dev/null && exit 0
[[ -x /usr/sbin/slurmctld && -x /usr/sbin/slurmd && -x /usr/sbin/munged ]] && exit 0
if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "setup-slurm: not root, or no apt-get; the test with a real Slurm cluster will be skipped" >&2
    exit 0
fi
echo "setup-slurm: installing slurm-wlm and munge"
# Nothing is started: what is installed here serves the test alone.
policy=/usr/sbin/policy-rc.d
made=
if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    made=yes
fi
trap '[[ -z $made ]] || rm -f "$policy"' EXIT
{ apt-get update -q && DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends slurm-wlm munge; } ||
    echo "setup-slurm: not installed; the test with a real Slurm cluster will be skipped" >&2
