package toolbox

var (
	SplitName    = splitName
	ServerPartIs = serverPartIs
	ToolPartIs   = toolPartIs
)

const MaxListings = maxListings

// Listings counts the configurations whose tools are remembered.
func Listings(b *Box) int {
	b.listings.mu.Lock()
	defer b.listings.mu.Unlock()
	n := 0
	for _, same := range b.listings.byKey {
		n += len(same)
	}
	if n != b.listings.count {
		panic("bug: the count is wrong")
	}
	return n
}

const MaxTalks = maxTalks

// Talks counts the conversations of which something is remembered.
func Talks(b *Box) int {
	b.talks.mu.Lock()
	defer b.talks.mu.Unlock()
	return len(b.talks.byScope)
}
