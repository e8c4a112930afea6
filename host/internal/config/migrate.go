package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// MigrateFunc returns the text of a configuration with the keys of this version, and a
// description of each change. dialect.Migrate is one.
type MigrateFunc func(file string, text []byte) (migrated []byte, changes []string, err error)

// Migration is a change of a configuration to the keys of this version.
type Migration struct {
	File          string
	Before, After []byte
	Changes       []string // none: the file has no keys of older versions
}

// PlanMigration reads a configuration and returns the change that migrate makes. It writes
// nothing. It returns the error of reading the file or of migrate.
func PlanMigration(file string, migrate MigrateFunc) (*Migration, error) {
	text, err := ReadRegular(file)
	if err != nil {
		return nil, err
	}
	m := &Migration{File: file, Before: text}
	m.After, m.Changes, err = migrate(file, text)
	return m, err
}

// Apply copies the file to FILE.before-migration and replaces it. It never overwrites an
// earlier copy: the next ones are FILE.before-migration-2 and so on. It returns the name of
// the copy. If the file has changed since PlanMigration, it writes nothing and returns an error.
func (m *Migration) Apply() (backup string, err error) {
	end, err := BeginChange(m.File)
	if err != nil {
		return "", err
	}
	defer end()
	info, err := os.Stat(m.File)
	if err != nil {
		return "", err
	}
	if now, err := readFile(m.File); err != nil || string(now) != string(m.Before) {
		return "", errors.Join(err, fmt.Errorf("another program changed %s at the same time; nothing was written: try again", m.File))
	}
	if backup, err = writeBackup(m.File+".before-migration", m.Before, info.Mode().Perm()); err != nil {
		return "", err
	}
	return backup, EditFile(m.File, m.After)
}

// writeBackup writes a new file backupName, or, if that exists, one with the first free
// number appended. It returns the name of the file, and an error if it could not be written
// as a whole; then no file is left.
func writeBackup(backupName string, text []byte, mode fs.FileMode) (string, error) {
	for at, i := backupName, 2; ; at, i = fmt.Sprintf("%s-%d", backupName, i), i+1 {
		f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
			os.Remove(at) //nolint:errcheck // err is the reason to report
		}
		return at, err
	}
}
