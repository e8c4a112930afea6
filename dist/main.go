// Dist builds every file of a release from a clone of the repository: archives,
// packages for Linux, container images, npm packages, .mcpb bundles, manifests for
// package managers, SBOMs and checksums.
//
//	go run . [-out DIR] [-platforms OS/ARCH,…]
//	go run . -check [-platforms OS/ARCH,…] [-cold]
//
// The files depend only on the commit, its tag and the version of Go. With -check it
// builds two clones in different directories and compares the files; -cold compiles
// for the second clone with an empty cache.
//
// TOOLROOM_SIGNING_KEY, a P-256 private key in PEM form, signs the checksums.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run() error {
	repo := flag.String("repo", "..", "build the clone in `DIR`")
	out := flag.String("out", "out", "write the files to `DIR`, which is emptied first")
	list := flag.String("platforms", allPlatforms, "build for the platforms in `LIST`")
	twice := flag.Bool("check", false, "build two clones and compare their files")
	cold := flag.Bool("cold", false, "with -check: compile for the second clone with an empty cache")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	platforms, err := parsePlatforms(*list)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(*repo)
	if err != nil {
		return err
	}
	target, err := filepath.Abs(*out)
	if err != nil {
		return err
	}
	if *twice {
		return check(root, target, *list, *cold)
	}
	release, err := describe(root)
	if err != nil {
		return err
	}
	release.Platforms, release.Out = platforms, target
	if err := release.build(); err != nil {
		return err
	}
	fmt.Printf("built toolroom %s for %s in %s\n", release.Version, strings.ReplaceAll(*list, ",", " "), target)
	return nil
}

// build writes all files of the release.
func (r *Release) build() error {
	if err := emptyOutput(r.Out); err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "toolroom-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := r.compileAll(stage); err != nil {
		return err
	}
	if err := r.collectDocuments(stage); err != nil {
		return err
	}
	var tasks []task
	for _, p := range r.Platforms {
		tasks = append(tasks, func() error { return r.archive(p) }, func() error { return r.platformPackage(p) })
		if p.OS == "linux" {
			tasks = append(tasks, func() error { return r.linuxPackages(p) }, func() error { return r.image(p) })
		}
	}
	tasks = append(tasks, r.bundles()...)
	if err := inParallel(tasks); err != nil {
		return err
	}
	for _, step := range []task{r.mainPackage, r.registryEntry, r.manifests, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
