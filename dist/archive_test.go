package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/macho"
	"encoding/binary"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var archived = []file{
	{name: "top/sub/program", mode: 0o755, data: []byte("program")},
	{name: "top/text", mode: 0o644, data: bytes.Repeat([]byte("text\n"), 1000)},
}

func TestTarGzIsTheSameEachTime(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var first, second bytes.Buffer
	require.NoError(t, writeTarGz(&first, archived, modified))
	require.NoError(t, writeTarGz(&second, archived, modified.In(time.FixedZone("elsewhere", 3600))))
	require.Equal(t, first.Bytes(), second.Bytes())

	plain, err := gzip.NewReader(&first)
	require.NoError(t, err)
	archive := tar.NewReader(plain)
	found := map[string]fs.FileMode{}
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.True(t, header.ModTime.Equal(modified))
		require.Zero(t, header.Uid)
		require.Empty(t, header.Uname)
		found[header.Name] = header.FileInfo().Mode()
	}
	require.Equal(t, map[string]fs.FileMode{
		"top/": fs.ModeDir | 0o755, "top/sub/": fs.ModeDir | 0o755, "top/sub/program": 0o755, "top/text": 0o644,
	}, found)
}

func TestZipKeepsModes(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	var first, second bytes.Buffer
	require.NoError(t, writeZip(&first, archived, modified))
	require.NoError(t, writeZip(&second, archived, modified))
	require.Equal(t, first.Bytes(), second.Bytes())
	archive, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	require.NoError(t, err)
	require.Len(t, archive.File, 2)
	require.EqualValues(t, 0o755, archive.File[0].Mode())
	require.True(t, archive.File[0].Modified.Equal(modified))
}

// machO returns the smallest header of a program for a processor.
func machO(processor macho.Cpu, size int) []byte {
	var header bytes.Buffer
	_ = binary.Write(&header, binary.LittleEndian, macho.FileHeader{Magic: macho.Magic64, Cpu: processor, SubCpu: 3, Type: macho.TypeExec})
	return append(header.Bytes(), make([]byte, size)...)
}

func TestUniversal(t *testing.T) {
	parts := [][]byte{machO(macho.CpuAmd64, 40_000), machO(macho.CpuArm64, 5)}
	joined, err := universal(parts)
	require.NoError(t, err)
	read, err := macho.NewFatFile(bytes.NewReader(joined))
	require.NoError(t, err)
	require.Len(t, read.Arches, 2)
	for i, arch := range read.Arches {
		require.Equal(t, []macho.Cpu{macho.CpuAmd64, macho.CpuArm64}[i], arch.FatArchHeader.Cpu)
		require.Zero(t, arch.Offset%(1<<arch.Align))
		require.Equal(t, parts[i], joined[arch.Offset:arch.Offset+arch.Size])
	}
	_, err = universal([][]byte{[]byte("\x7fELF and so on, which is no program of macOS")})
	require.Error(t, err)
}
