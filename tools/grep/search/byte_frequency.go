package search

// byteFrequency is the number of occurrences of each byte in 65 536 bytes of
// text, measured over sources in Go, C, Python, Perl and JavaScript, JSON and
// Markdown. It only affects speed.
var byteFrequency = [256]uint16{
	2, 2, 2, 2, 2, 2, 2, 2, 2, 787, 1915, 2, 2, 6, 2, 2,
	2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
	12069, 46, 977, 124, 150, 38, 67, 373, 721, 721, 246, 61, 943, 334, 810, 623,
	441, 275, 212, 136, 140, 108, 139, 84, 108, 90, 583, 274, 111, 453, 173, 42,
	47, 224, 110, 241, 153, 297, 145, 96, 70, 253, 17, 39, 160, 138, 187, 176,
	203, 13, 207, 299, 323, 100, 54, 48, 49, 39, 57, 172, 112, 171, 16, 964,
	152, 2347, 501, 1385, 1211, 4172, 885, 626, 785, 2311, 89, 249, 1409, 896, 2381, 2202,
	1168, 84, 2534, 2364, 3191, 1100, 337, 284, 428, 511, 113, 349, 68, 347, 15, 2,
	31, 16, 18, 17, 13, 14, 13, 16, 15, 13, 13, 13, 14, 21, 12, 25,
	12, 15, 13, 12, 20, 15, 13, 13, 13, 19, 14, 13, 14, 13, 15, 38,
	13, 14, 11, 13, 20, 14, 15, 16, 15, 13, 14, 11, 11, 12, 14, 13,
	16, 13, 15, 13, 13, 14, 11, 12, 24, 16, 14, 15, 16, 17, 16, 15,
	2, 2, 3, 8, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2,
	21, 9, 2, 2, 2, 2, 2, 6, 6, 5, 2, 2, 2, 2, 2, 2,
	23, 9, 29, 6, 11, 62, 63, 56, 54, 45, 3, 11, 12, 6, 2, 8,
	34, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
}

// foldedFrequency returns the frequency, between 0 and 1, of b in text. A letter in lower
// case counts together with its upper case; a letter in upper case counts alone.
func foldedFrequency(b byte) float64 {
	if b >= 'a' && b <= 'z' {
		return (float64(byteFrequency[b]) + float64(byteFrequency[b-32])) / 65536
	}
	return float64(byteFrequency[b]) / 65536
}
