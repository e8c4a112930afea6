package undo_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// accessList encodes a list that gives a user the permissions r-x, and others none.
func accessList(user uint32) []byte {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][3]uint32{{1, 7, ^uint32(0)}, {2, 5, user}, {4, 5, ^uint32(0)}, {16, 5, ^uint32(0)}, {32, 0, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(entry[1]))
		list = binary.LittleEndian.AppendUint32(list, entry[2])
	}
	return list
}

// Undo restores the extended attributes and access lists of a removed directory, and
// those of a file that was written after it was removed.
func TestAttributesAreRestored(t *testing.T) {
	for name, script := range map[string]string{
		"removed":              "rm -r d",
		"removed, made again":  "rm -r d; mkdir d; echo b > d/a",
		"only an empty one":    "rmdir d/empty",
		"renamed over":         "mkdir e; mv -T e d/empty",
		"written after all":    "exec 3>>d/a; rm -r d; echo late >&3",
		"written, then gone":   "echo more >> d/a; rm -r d",
		"changed and restored": "cp -r d e; rm -r d; mv e d",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, proc.L2)
			user := uint32(os.Geteuid())
			if user == 0 {
				user = 1234 // the namespace of a plain user's command knows no other users
			}
			b.RunOutside("mkdir -p d/empty; echo a > d/a; chmod 750 d/a; touch -d @1700000000 d/a d/empty d .")
			for path, attributes := range map[string]map[string][]byte{
				"d":       {"system.posix_acl_default": accessList(user), "user.of": []byte("d")},
				"d/empty": {"system.posix_acl_access": accessList(user)},
				"d/a":     {"system.posix_acl_access": accessList(user), "user.of": []byte("a")},
			} {
				for attribute, value := range attributes {
					if err := unix.Setxattr(filepath.Join(b.Root, path), attribute, value, 0); err != nil {
						t.Skipf("this file system has no %s: %v", attribute, err)
					}
				}
			}
			before := sandboxtest.DescribeTree(t, b.Root)
			id, _ := b.run(script)
			require.NotEqual(t, before, sandboxtest.DescribeTree(t, b.Root))
			b.undo(id)
			require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
		})
	}
}

// A time in the future, which a file had before the command, is no change by others.
func TestTimesInTheFuture(t *testing.T) {
	b := newBench(t, proc.L2)
	b.RunOutside("mkdir d; echo a > d/a; touch -d @4000000000 d/a; touch -d @1700000000 d .")
	before := sandboxtest.DescribeTree(t, b.Root)
	first, _ := b.run("mkdir e; mv d e/d")
	between := sandboxtest.DescribeTree(t, b.Root)
	second, _ := b.run("rm -r e")
	b.undo(second)
	require.Equal(t, between, sandboxtest.DescribeTree(t, b.Root))
	b.undo(first)
	require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
}

// Undo of a plain user's command restores a removed directory without the entries of its
// access list that name others, which the command's namespace does not have, and names it.
// Undo by root restores all.
func TestAccessListsOfOthers(t *testing.T) {
	b := newBench(t, proc.L2)
	b.RunOutside("mkdir -p d/sub keep; touch -d @1700000000 d/sub d keep .")
	for _, name := range []string{"d", "d/sub", "keep"} {
		if err := unix.Setxattr(filepath.Join(b.Root, name), "system.posix_acl_access", accessList(1234), 0); err != nil {
			t.Skipf("this file system has no access lists: %v", err)
		}
	}
	before := sandboxtest.DescribeTree(t, b.Root)
	id, _ := b.run("rmdir d/sub d; rmdir keep/none; mkdir d; rmdir d; chmod 700 keep; chmod 750 keep")
	report := b.undo(id)
	if os.Geteuid() == 0 {
		require.Empty(t, report.LostAccess)
		require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
		return
	}
	require.Equal(t, []string{filepath.Join(b.Root, "d"), filepath.Join(b.Root, "d/sub")}, report.LostAccess)
	for _, name := range []string{"d", "d/sub", "keep"} {
		list := make([]byte, 256)
		n, err := unix.Getxattr(filepath.Join(b.Root, name), "system.posix_acl_access", list)
		require.NoError(t, err)
		if want := accessList(1234); name == "keep" {
			require.Equal(t, want, list[:n], name)
		} else {
			require.Equal(t, append(want[:12:12], want[20:]...), list[:n], name) // without the entry of the user
		}
	}
}

func TestAccessListsAsAPlainUser(t *testing.T) {
	sandboxtest.AsPlainUser(t, "TestAccessListsOfOthers")
}
