package proc

// fileID holds device and inode of a file. After the file is deleted, a later
// file may have the same.
type fileID struct{ dev, ino int64 }
