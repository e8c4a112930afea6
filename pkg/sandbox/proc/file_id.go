package proc

// fileID identifies a file by device and inode. After the file is deleted, a
// later file may have the same.
type fileID struct{ dev, ino int64 }
