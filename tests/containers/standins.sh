#!/usr/bin/env bash
# Docker for a machine that reaches Debian's and Python's packages but no image registry: installs Docker and Compose,
# starts the daemon unless one answers, and makes local images under the names that docker-compose.yml and
# stack/Dockerfile ask for. As root, on Debian 12. Usage: docker-standins.sh [WORK_FOLDER]; DOCKER_HOST names another daemon.
set -euo pipefail
here=$(realpath -m "${1:-/tmp/docker-standins}")
compose=$(realpath "$(dirname "$0")/../../docker-compose.yml")
tag() { sed -nE "s/^ *image: [^:]+\/$1:\\$\{[A-Z_]+:-([^}]+)\}$/\1/p" "$compose"; }
mkdir -p "$here"
export DOCKER_HOST=${DOCKER_HOST:-unix://$here/docker.sock} DEBIAN_FRONTEND=noninteractive
step() { echo "== $* ($SECONDS s)"; }

step packages
needed=()
command -v dockerd > /dev/null || needed+=(docker.io)
for tool in docker-compose debootstrap; do command -v $tool > /dev/null || needed+=($tool); done
command -v busybox > /dev/null || needed+=(busybox-static)
[ ${#needed[@]} -eq 0 ] || { apt-get update -q; apt-get install -q -y --no-install-recommends "${needed[@]}" iptables cgroupfs-mount; }

step daemon
if ! docker info > /dev/null 2>&1; then
    mountpoint -q /sys/fs/cgroup || cgroupfs-mount
    dockerd --data-root "$here/data" --exec-root "$here/exec" --pidfile "$here/pid" -H "$DOCKER_HOST" > "$here/dockerd.log" 2>&1 &
    for _ in $(seq 60); do docker info > /dev/null 2>&1 && break; sleep 1; done
    docker info > /dev/null || { tail "$here/dockerd.log"; exit 1; }
fi

lacks() { ! docker image inspect "$1" > /dev/null 2>&1; }
if lacks python:3.11-slim-bookworm; then
step base: Debian with its Python 3.11, and what pip is told on this machine
base=$here/base
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' 'Identifier: Packages' | head -1)
rm -rf "$base" && mkdir -p "$base"
debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm "$base" "$mirror" > "$here/debootstrap.log"
rm -rf "$base"/var/cache/apt/archives/*.deb "$base"/var/lib/apt/lists/* "$base"/usr/lib/python3.*/EXTERNALLY-MANAGED
ln -s /usr/bin/python3 "$base/usr/local/bin/python"
cp /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/ca-certificates.crt"
echo "[global]" > "$base/etc/pip.conf"
pip config list | sed -n "s/^\(:env:\.\|global\.\)\([a-z-]*\)='\(.*\)'$/\2 = \3/p" | grep -vE '^(constraint|extra-index-url.*file:)' | sort -u -t= -k1,1 >> "$base/etc/pip.conf"
for wheels in $(sed -n 's/^find-links = //p' "$base/etc/pip.conf"); do
    [ ! -d "$wheels" ] || { mkdir -p "$base$wheels" && cp -a "$wheels/." "$base$wheels/"; }
done
changes=(--change 'CMD ["python3"]' --change 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt')
for name in $(compgen -e | grep -iE '^(http|https|no)_proxy$' || true); do changes+=(--change "ENV $name=${!name}"); done
tar -C "$base" -c . | docker import "${changes[@]}" - python:3.11-slim-bookworm > /dev/null
fi

step prometheus and alertmanager from Debian
add_busybox() { install -D "$(command -v busybox)" "$1/bin/busybox"; for tool in sh wget; do ln -sf busybox "$1/bin/$tool"; done; mkdir -p "$1/tmp" "$1/etc"; echo 'nobody:x:65534:65534::/:/bin/sh' > "$1/etc/passwd"; }
for pair in "prometheus:prometheus:$(tag prometheus)" "prometheus-alertmanager:alertmanager:$(tag alertmanager)"; do
    IFS=: read -r package name tag <<< "$pair"
    lacks "prom/$name:$tag" || continue
    root=$here/$name
    rm -rf "$root" && mkdir -p "$root" "$here/debs"
    (cd "$here/debs" && rm -f "${package}"_*.deb && apt-get -q -o APT::Sandbox::User= download "$package" > /dev/null && dpkg-deb -x "${package}"_*.deb "$root")
    add_busybox "$root"
    ln -s "/usr/bin/$package" "$root/bin/$name"
    ldd "$root/usr/bin/$package" | grep -o '/[^ ]*' | while read -r library; do install -D "$library" "$root$library"; done || true
    install -d -o 65534 -g 65534 "$root/$name"
    tar -C "$root" -c . | docker import --change "ENTRYPOINT [\"/bin/$name\"]" --change "WORKDIR /$name" --change 'USER nobody' --change "VOLUME /$name" - "prom/$name:$tag" > /dev/null
done

step "grafana: only a witness that answers /api/health once it can read and write what Grafana would"
printf '%s\n' 'FROM python:3.11-slim-bookworm' 'RUN install -d -m 777 -o 472 -g 0 /var/lib/grafana' 'COPY busybox /bin/wget' 'COPY witness.py /witness.py' 'USER 472' 'ENTRYPOINT ["python", "-u", "/witness.py"]' > "$here/grafana.Dockerfile"
cat > "$here/witness.py" <<'P'
import http.server, os, pathlib, re, urllib.request
def look():
    secret = re.fullmatch(r"\$__file\{(.+)\}", os.environ["GF_SECURITY_ADMIN_PASSWORD"])[1]
    assert pathlib.Path(secret).read_text().strip(), "empty password"
    assert list(pathlib.Path(os.environ["GF_PATHS_DASHBOARDS"]).glob("*.json")), "no dashboards"
    assert pathlib.Path(os.environ["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]).is_file(), "no home dashboard"
    assert list(pathlib.Path("/etc/grafana/provisioning").rglob("*.y*ml")), "no provisioning"
    pathlib.Path("/var/lib/grafana/grafana.db").write_text("x")
    urllib.request.urlopen(os.environ["HEAPWATCH_PROMETHEUS_URL"] + "/-/ready", timeout=3)
class Witness(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try: look(); code, text = 200, "ok"
        except Exception as error: code, text = 503, repr(error)
        if self.path == "/metrics": text = "# stand-in\ngrafana_stand_in 1\n"; code = 200
        self.send_response(code); self.send_header("Content-Type", "text/plain; version=0.0.4"); self.end_headers(); self.wfile.write(text.encode())
http.server.ThreadingHTTPServer(("", int(os.environ["GF_SERVER_HTTP_PORT"])), Witness).serve_forever()
P
mkdir -p "$here/context" && cp "$here/witness.py" "$(command -v busybox)" "$here/context/"
docker build -q -f "$here/grafana.Dockerfile" -t "grafana/grafana:$(tag grafana)" "$here/context" > /dev/null
step done
docker images
