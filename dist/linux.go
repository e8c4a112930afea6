package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/apk"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
	"golang.org/x/mod/semver"
)

// linuxPackages writes the deb, rpm and apk packages of a platform.
func (r *Release) linuxPackages(p Platform) error {
	work, err := os.MkdirTemp("", "toolroom-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for format, packager := range map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM, "apk": apk.Default} {
		contents, err := r.installed(p, work)
		if err != nil {
			return err
		}
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "toolroom", Arch: p.Arch, Platform: "linux", Version: r.Version,
			Section: "devel", Priority: "optional", Maintainer: organization + " <toolroom-mcp@users.noreply.github.com>", Vendor: organization,
			Description: summary, Homepage: homepage, License: "MIT", MTime: r.Time, DisableGlobbing: true,
			Overridables: nfpm.Overridables{
				Contents: contents, Umask: 0o022,
				RPM: nfpm.RPM{BuildHost: "localhost", Summary: summary, Group: "Development/Tools"},
			},
		})
		if format == "apk" {
			info.Version, info.Prerelease, info.VersionSchema = apkVersion(r.Version), "", "none"
		}
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		name := "toolroom_" + r.Number() + "_" + p.String() + "." + format
		if err := r.write(name, func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

// installed returns the places of the files on Linux. Files that exist only in memory
// are written to the directory work.
func (r *Release) installed(p Platform, work string) (files.Contents, error) {
	var contents files.Contents
	add := func(f file, destination string) error {
		source := f.path
		if source == "" {
			source = filepath.Join(work, strings.ReplaceAll(f.name, "/", "_"))
			if err := os.WriteFile(source, f.data, 0o644); err != nil {
				return err
			}
		}
		contents = append(contents, &files.Content{
			Source: source, Destination: destination,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: r.Time},
		})
		return nil
	}
	const manuals = "/usr/share/doc/toolroom/"
	// rpm removes only directories that the package has. Others can share them.
	for _, dir := range []string{
		manuals, "/usr/share/bash-completion", "/usr/share/bash-completion/completions", "/usr/share/zsh",
		"/usr/share/zsh/vendor-completions", "/usr/share/fish", "/usr/share/fish/vendor_completions.d",
	} {
		contents = append(contents, &files.Content{
			Destination: dir, Type: files.TypeDir,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: r.Time},
		})
	}
	for _, f := range r.programFiles(p) {
		if err := add(f, "/usr/bin/"+f.name); err != nil {
			return nil, err
		}
	}
	places := map[string]string{
		"LICENSE":                   manuals + "copyright",
		"README.md":                 manuals + "README.md",
		"THIRD_PARTY_LICENSES.txt":  manuals + "THIRD_PARTY_LICENSES.txt",
		"completions/mcp-host.bash": "/usr/share/bash-completion/completions/mcp-host",
		"completions/mcp-host.zsh":  "/usr/share/zsh/vendor-completions/_mcp-host",
		"completions/mcp-host.fish": "/usr/share/fish/vendor_completions.d/mcp-host.fish",
	}
	for _, f := range r.documents {
		if place := places[f.name]; place != "" {
			if err := add(f, place); err != nil {
				return nil, err
			}
		}
	}
	return contents, nil
}

var prerelease = regexp.MustCompile(`^-(alpha|beta|pre|rc)\.?([0-9]*)`)

// apkVersion returns the version as Alpine writes it: 1.2.3, 1.2.3_rc1, or
// 1.2.3_git20260102030405 for a commit without a tag.
func apkVersion(version string) string {
	pre := semver.Prerelease(version)
	number := strings.TrimPrefix(strings.TrimSuffix(semver.Canonical(version), pre), "v")
	if stamp := regexp.MustCompile(`[0-9]{14}`).FindString(pre); stamp != "" {
		return number + "_git" + stamp
	}
	if found := prerelease.FindStringSubmatch(pre); found != nil {
		return number + "_" + found[1] + found[2]
	}
	return number
}
