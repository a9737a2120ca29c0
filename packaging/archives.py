#!/usr/bin/env python3
"""Puts a binary into the packages of a release: an archive, a Python wheel, npm packages and a Debian package.

Nothing in them depends on the time, the machine or the order of a directory, so that the same binary gives the same bytes.
`./package` calls it.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import tarfile
import zipfile

DIST = pathlib.Path("dist")
TIME = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
SUMMARY = "A durable, transactional runtime for LLM agents"
REPOSITORY = "https://github.com/backstitch/backstitch"
# Architectures as Debian, npm and Python call them.
NAMES = {"x86_64": ("amd64", "x64", "x86_64"), "aarch64": ("arm64", "arm64", "aarch64")}


def packed(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=9, mtime=0)


def tar(files: dict[str, tuple[bytes, int]], prefix: str = "") -> bytes:
    """A tar file of files with their modes, and of the directories above them."""
    directories = {str(parent) for name in files for parent in pathlib.PurePosixPath(name).parents} - {"."}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(directories | set(files)):
            entry = tarfile.TarInfo(prefix + name)
            entry.mtime = TIME
            entry.uname = entry.gname = "root"
            if name in files:
                data, entry.mode = files[name]
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
    return out.getvalue()


def archive(name: str, binary: bytes, man: dict, completions: dict) -> None:
    files = {f"{name}/backstitch": (binary, 0o755)}
    for page in ["README.md", "LICENSE", "CHANGELOG.md"]:
        files[f"{name}/{page}"] = (pathlib.Path(page).read_bytes(), 0o644)
    files |= {f"{name}/man/{page}": (data, 0o644) for page, data in man.items()}
    files |= {f"{name}/completions/{shell}": (data, 0o644) for shell, data in completions.items()}
    (DIST / f"{name}.tar.gz").write_bytes(packed(tar(files)))


def wheel(version: str, architecture: str, binary: bytes) -> None:
    """A wheel (PEP 427) whose one script is the binary. It is static, so it runs with any C library."""
    platforms = [f"manylinux_2_17_{architecture}", f"manylinux2014_{architecture}", f"musllinux_1_1_{architecture}"]
    info = f"backstitch-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.4\nName: backstitch\nVersion: {version}\nSummary: {SUMMARY}\n"
        f"License-Expression: MIT\nLicense-File: LICENSE\nProject-URL: Repository, {REPOSITORY}\n"
        "Requires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n"
    ) + pathlib.Path("README.md").read_text()
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    files = {
        f"backstitch-{version}.data/scripts/backstitch": (binary, 0o755),
        f"{info}/METADATA": (metadata.encode(), 0o644),
        f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: backstitch\nRoot-Is-Purelib: false\n{tags}".encode(), 0o644),
        f"{info}/licenses/LICENSE": (pathlib.Path("LICENSE").read_bytes(), 0o644),
    }
    record = ""
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    path = DIST / f"backstitch-{version}-py3-none-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, data)


def npm(version: str, architecture: str, binary: bytes) -> None:
    """A package with the binary for one architecture, and the package that users install, which chooses among them."""
    common = {"version": version, "license": "MIT", "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"}}
    licence = {"LICENSE": (pathlib.Path("LICENSE").read_bytes(), 0o644)}

    def write(manifest: dict, files: dict) -> None:
        text = (json.dumps(manifest, indent=2) + "\n").encode()
        files = licence | files | {"package.json": (text, 0o644)}
        name = manifest["name"].removeprefix("@").replace("/", "-")
        content = {f"package/{path}": file for path, file in files.items()}
        (DIST / f"{name}-{version}.tgz").write_bytes(packed(tar(content)))

    one = {"name": f"@backstitch/linux-{architecture}", "description": f"The binary of backstitch for Linux on {architecture}"}
    one |= common | {"os": ["linux"], "cpu": [architecture], "files": ["bin/backstitch"], "preferUnplugged": True}
    write(one, {"bin/backstitch": (binary, 0o755)})
    names = [f"@backstitch/linux-{cpu}" for _, cpu, _ in NAMES.values()]
    main = {"name": "backstitch", "description": SUMMARY} | common
    main |= {"os": ["linux"], "cpu": [cpu for _, cpu, _ in NAMES.values()], "engines": {"node": ">=18"}}
    main |= {"bin": {"backstitch": "bin/backstitch.js"}, "files": ["bin/backstitch.js"]}
    main["optionalDependencies"] = {name: version for name in names}
    write(main, {
        "bin/backstitch.js": (pathlib.Path("packaging/backstitch.js").read_bytes(), 0o755),
        "README.md": (pathlib.Path("README.md").read_bytes(), 0o644),
    })


def debian(version: str, architecture: str, binary: bytes, man: dict, completions: dict) -> None:
    copyright_note = (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        f"Upstream-Name: backstitch\nSource: {REPOSITORY}\n\nFiles: *\nCopyright: the authors of Backstitch\nLicense: MIT\n"
    ) + "".join(f" {line or '.'}\n" for line in pathlib.Path("LICENSE").read_text().strip().split("\n"))
    files = {
        "usr/bin/backstitch": (binary, 0o755),
        "usr/share/doc/backstitch/copyright": (copyright_note.encode(), 0o644),
        "usr/share/doc/backstitch/changelog.gz": (packed(pathlib.Path("CHANGELOG.md").read_bytes()), 0o644),
        "usr/share/bash-completion/completions/backstitch": (completions["bash"], 0o644),
        "usr/share/zsh/vendor-completions/_backstitch": (completions["zsh"], 0o644),
        "usr/share/fish/vendor_completions.d/backstitch.fish": (completions["fish"], 0o644),
    } | {f"usr/share/man/man1/{page}.gz": (packed(data), 0o644) for page, data in man.items()}
    size = sum(len(data) for data, _ in files.values()) // 1024 + 1
    control = (
        f"Package: backstitch\nVersion: {version}-1\nArchitecture: {architecture}\nMaintainer: the authors of Backstitch <backstitch@invalid>\n"
        f"Installed-Size: {size}\nRecommends: ca-certificates, tzdata\nSuggests: git\nSection: devel\nPriority: optional\n"
        f"Homepage: {REPOSITORY}\nDescription: {SUMMARY}\n"
        " Every step of an agent is journaled, every tool call is a transaction, and every\n session resumes, rewinds and forks.\n"
    )
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {name}\n" for name, (data, _) in sorted(files.items()))
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": packed(tar({"control": (control.encode(), 0o644), "md5sums": (sums.encode(), 0o644)}, "./")),
        "data.tar.gz": packed(tar(files, "./")),
    }
    out = b"!<arch>\n"
    for name, data in members.items():
        out += f"{name:<16}{TIME:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    (DIST / f"backstitch_{version}-1_{architecture}.deb").write_bytes(out)


def checksums() -> None:
    files = sorted(path for path in DIST.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(DIST)}\n" for path in files]
    (DIST / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checksums", action="store_true")
    parser.add_argument("--archive-only", action="store_true")
    for name in ["triple", "version", "binary", "surroundings"]:
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    if options.checksums:
        return checksums()
    binary = pathlib.Path(options.binary).read_bytes()
    around = pathlib.Path(options.surroundings)
    man = {path.name: path.read_bytes() for path in sorted((around / "man").iterdir())}
    completions = {path.name: path.read_bytes() for path in sorted((around / "completions").iterdir())}
    archive(f"backstitch-{options.version}-{options.triple}", binary, man, completions)
    if not options.archive_only:
        deb, cpu, machine = NAMES[options.triple.split("-")[0]]
        wheel(options.version, machine, binary)
        npm(options.version, cpu, binary)
        debian(options.version, deb, binary, man, completions)


if __name__ == "__main__":
    main()
