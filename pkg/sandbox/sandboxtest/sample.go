package sandboxtest

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// sampleEnv is the environment variable that chooses the sample: "all", or a seed. Without
// it, each process draws a seed.
const sampleEnv = "TOOLROOM_SAMPLE"

// sampleShare is the share of the cases that are in a sample: one of sampleShare.
const sampleShare = 6

var sampleSeed = sync.OnceValue(func() string {
	if seed := os.Getenv(sampleEnv); seed != "" {
		return seed
	}
	return strconv.Itoa(rand.IntN(1_000_000))
})

// InSample reports whether a case of a long test runs: a sixth of the names, chosen by the
// seed in TOOLROOM_SAMPLE or by chance; all of them if it is "all", as in make corpora.
func InSample(name string) bool {
	if sampleSeed() == "all" {
		return true
	}
	sum := fnv.New64a()
	sum.Write([]byte(sampleSeed() + "\x00" + name))
	return sum.Sum64()%sampleShare == 0
}

// SkipUnsampled skips a test or subtest that is not in the sample. The Makefile's CORPORA
// lists the tests that use SkipUnsampled, AsPlainUser or Seeds.
func SkipUnsampled(t testing.TB) {
	t.Helper()
	if !InSample(t.Name()) {
		t.Skipf("not in the sample with %s=%s; make corpora runs all", sampleEnv, sampleSeed())
	}
}
