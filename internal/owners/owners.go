package owners

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Others is what user ids are counted under that nobody knows, with the control group if that is known.
const Others = "others"

// Owners knows whose a user id is. Those that /etc/subuid (subuid(5)) gives to a user
// are counted as the user's own. Ids that no file and no user database knows are counted
// together by control group, as all in a container may be one user's. Safe for concurrent use.
type Owners struct {
	file  string                           // of the ranges
	known func(uid uint32) bool            // by the user database
	id    func(name string) (uint32, bool) // of a user

	mu     sync.Mutex
	read   time.Time // modification time of what was read
	size   int64
	ranges []owned         // in the order of first
	seen   map[uint32]bool // what known said
}

// owned is a range of user ids and whose they are.
type owned struct{ first, last, owner uint32 }

// mostSeen is how many answers of the user database are kept.
const mostSeen = 4096

// New returns the owners by this system's files and user database.
func New() *Owners {
	return &Owners{
		file: "/etc/subuid", seen: make(map[uint32]bool),
		known: func(uid uint32) bool {
			_, err := user.LookupId(fmt.Sprint(uid))
			return err == nil
		},
		id: func(name string) (uint32, bool) {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, false
			}
			n, err := strconv.ParseUint(u.Uid, 10, 32)
			return uint32(n), err == nil
		},
	}
}

// Of names the owner of a user id. Only if no file and no user database knows the id, it calls group for
// the control group of the process, as GroupOf names it. To read that from /proc costs as much as to
// accept and refuse a connection. A nil group stands for one that is unknown.
func (o *Owners) Of(uid uint32, group func() string) string {
	if owner, known := o.ownerOf(uid); known {
		return Name(owner)
	}
	if group != nil {
		if name := group(); name != "" {
			return Others + " in " + name
		}
	}
	return Others
}

// ownerOf returns the user that has an id, and whether anything knows it.
func (o *Owners) ownerOf(uid uint32) (owner uint32, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refreshLocked()
	i, found := slices.BinarySearchFunc(o.ranges, uid, func(r owned, uid uint32) int { return cmp.Compare(r.first, uid) })
	if !found {
		i--
	}
	if i >= 0 && uid <= o.ranges[i].last {
		return o.ranges[i].owner, true
	}
	known, asked := o.seen[uid]
	if !asked {
		if len(o.seen) >= mostSeen {
			clear(o.seen)
		}
		known = o.known(uid)
		o.seen[uid] = known
	}
	return uid, known
}

// Name is what the user of an id is counted under, if the id is a user's own.
func Name(uid uint32) string { return fmt.Sprintf("uid %d", uid) }

// refreshLocked reads the ranges if the file changed. Must hold mu.
func (o *Owners) refreshLocked() {
	var info fs.FileInfo
	info, err := os.Stat(o.file)
	if err != nil {
		o.ranges, o.read = nil, time.Time{}
		return
	}
	if info.ModTime().Equal(o.read) && info.Size() == o.size {
		return
	}
	text, err := os.ReadFile(o.file)
	if err != nil {
		return
	}
	o.read, o.size, o.ranges = info.ModTime(), info.Size(), o.parse(text)
	clear(o.seen) // users come with their ranges
}

// parse reads lines "user:first:count". One that makes no sense is left out.
func (o *Owners) parse(text []byte) (ranges []owned) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		field := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(field) != 3 {
			continue
		}
		first, bad := strconv.ParseUint(field[1], 10, 32)
		count, bad2 := strconv.ParseUint(field[2], 10, 32)
		if bad != nil || bad2 != nil || count == 0 {
			continue
		}
		owner, ok := o.id(field[0])
		if n, err := strconv.ParseUint(field[0], 10, 32); !ok && err == nil {
			owner, ok = uint32(n), true
		}
		if ok {
			ranges = append(ranges, owned{uint32(first), uint32(min(first+count-1, 1<<32-1)), owner})
		}
	}
	slices.SortFunc(ranges, func(a, b owned) int { return cmp.Compare(a.first, b.first) })
	return ranges
}
