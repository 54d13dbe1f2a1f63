package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// page is what the screen shows.
type page int

const (
	pageOverview page = iota
	pageDevice
	pageHelp
)

// order is how the screen sorts channels.
type order int

const (
	byBytes order = iota
	byMessages
	byErrors
	byTarget
	orders
)

var orderNames = [orders]string{"bytes", "messages", "errors", "target"}

// topModel is the screen of nfctl top.
type topModel struct {
	ctx   context.Context
	fetch func(context.Context) (sample, error)
	opt   topOptions
	title string
	color bool

	before, now sample
	record      topRecord
	err         error // of the last sample; the one before is still shown

	width, height int
	page          page
	cursor        int // index of the chosen device
	scroll        int // lines of the page that are above the screen
	order         order
	paused        bool
}

// sampled brings the answer to a fetch.
type sampled struct {
	sample sample
	err    error
}

// due is the message that the next sample is due.
type due struct{}

// topScreen runs the screen until the person ends it. more adjusts the program.
func (a *app) topScreen(ctx context.Context, fetch func(context.Context) (sample, error), o topOptions, more ...tea.ProgramOption) error {
	first, err := fetch(ctx)
	if err != nil {
		return err
	}
	title := a.address
	switch {
	case a.device != "":
		title = a.device
	case first.parts != nil:
		title = fmt.Sprintf("%d servers", len(first.parts))
	}
	m := topModel{ctx: ctx, fetch: fetch, opt: o, title: title, color: a.color()}.add(first)
	// A signal ends ctx, and that the program.
	options := append(more, tea.WithContext(ctx), tea.WithInput(a.in), tea.WithOutput(a.out), tea.WithoutSignalHandler())
	_, err = tea.NewProgram(m, options...).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil // the person pressed ctrl+c, as good as q
	}
	return err
}

// Init waits for the second sample.
func (m topModel) Init() tea.Cmd { return m.wait() }

// wait makes the next sample due.
func (m topModel) wait() tea.Cmd {
	return tea.Tick(m.opt.interval, func(time.Time) tea.Msg { return due{} })
}

// ask fetches a sample.
func (m topModel) ask() tea.Msg {
	s, err := m.fetch(m.ctx)
	return sampled{s, err}
}

// Update follows one message.
func (m topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case due:
		if m.paused {
			return m, m.wait()
		}
		return m, m.ask
	case sampled:
		m.err = msg.err
		if msg.err == nil {
			m = m.add(msg.sample)
		} else {
			m.record.Devices = slices.Clone(m.record.Devices)
			for i := range m.record.Devices {
				m.record.Devices[i].stale = true
			}
		}
		return m, m.wait()
	case tea.KeyPressMsg:
		return m.key(msg.String())
	}
	return m, nil
}

// add takes a sample in.
func (m topModel) add(s sample) topModel {
	m.before, m.now = m.now, s
	m.record = compare(m.before, m.now, math.MaxInt)
	m.cursor = max(0, min(m.cursor, len(m.record.Devices)-1))
	return m
}

// key follows a key.
func (m topModel) key(name string) (tea.Model, tea.Cmd) {
	switch name {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "up", "k":
		return m.choose(m.cursor - 1), nil
	case "down", "j":
		return m.choose(m.cursor + 1), nil
	case "pgup":
		return m.scrolled(m.scroll - m.room()), nil
	case "pgdown":
		return m.scrolled(m.scroll + m.room()), nil
	case "enter", "right", "l":
		if m.page == pageOverview && len(m.record.Devices) > 0 {
			m.page, m.scroll = pageDevice, 0
		}
	case "esc", "left", "backspace":
		m.page, m.scroll = pageOverview, 0
	case "s":
		m.order = (m.order + 1) % orders
	case "p", "space":
		m.paused = !m.paused
	case "?", "h":
		m.scroll = 0
		if m.page == pageHelp {
			m.page = pageOverview
		} else {
			m.page = pageHelp
		}
	}
	return m, nil
}

// choose moves the cursor, and the page so that it is seen.
func (m topModel) choose(device int) topModel {
	m.cursor = max(0, min(device, len(m.record.Devices)-1))
	line := m.cursor + 1 // below the titles
	if m.page == pageOverview && (line < m.scroll || line >= m.scroll+m.room()) {
		return m.scrolled(line - m.room()/2)
	}
	return m
}

// scrolled moves the page, no further than its end.
func (m topModel) scrolled(lines int) topModel {
	m.scroll = max(0, min(lines, len(m.body())-m.room()))
	return m
}

// room is the number of lines of the page that the screen shows; all of them without a size.
func (m topModel) room() int {
	if m.height == 0 {
		return len(m.body())
	}
	return max(1, m.height-len(m.head()))
}

const topHelp = `up, down     choose a device
pgup, pgdown scroll
enter        show it alone, with its parts and memories
esc          back to all devices
s            sort channels by bytes, messages, errors, target
p            pause
?            this help
q            end
`

// View draws the page that is shown, cut to the size of the screen.
func (m topModel) View() tea.View {
	body := m.body()
	first := max(0, min(m.scroll, len(body)-m.room()))
	v := tea.NewView(cut(append(m.head(), body[first:]...), m.width, m.height))
	v.AltScreen = true
	return v
}

// head returns the lines that do not scroll.
func (m topModel) head() []string {
	p := &printer{color: m.color}
	return strings.Split(string(m.status(p))+"\n", "\n")
}

// body returns the lines of the page.
func (m topModel) body() []string {
	var b bytes.Buffer
	p := &printer{w: &b, wide: true, color: m.color, columns: m.width}
	switch m.page {
	case pageHelp:
		p.printf("%s", topHelp)
	case pageDevice:
		m.device(p)
	default:
		m.overview(p)
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// status is the first line.
func (m topModel) status(p *printer) painted {
	text := p.paint(fmt.Sprintf("nfctl top  %s  %s  every %v  channels by %s  ? help",
		m.title, m.now.at.Format(time.TimeOnly), m.opt.interval, orderNames[m.order]), plainTint)
	if m.paused {
		text += "  " + p.paint("paused", warn)
	}
	if some := partial(plainServers(m.record.Servers)); some != nil {
		text += "\n" + p.paint(some.Error(), warn)
	}
	if m.err != nil {
		text += "\n" + p.paint(message(m.err), bad)
	}
	return text
}

// cut drops what does not fit; without a size all of it fits.
func cut(lines []string, width, height int) string {
	if height > 0 && len(lines) > height {
		lines = lines[:height]
	}
	if width > 0 {
		for i, l := range lines {
			lines[i] = ansi.Truncate(l, width, "")
		}
	}
	return strings.Join(lines, "\n")
}

// overview shows all devices and channels.
func (m topModel) overview(p *printer) {
	chosen := column[topDeviceRecord]{cell: func(d topDeviceRecord) string {
		if c := m.chosen(); d.Device == c.Device && d.Context == c.Context {
			return ">"
		}
		return ""
	}}
	writeTable(p, append([]column[topDeviceRecord]{chosen}, topDeviceColumns(m.many())...), m.record.Devices)
	p.printf("\n")
	writeTable(p, topChannelColumns(m.many()), m.channels(m.record.Channels))
	wide := p.wide
	p.wide = false // a hundred servers that are ok say nothing
	writeServers(p, plainServers(m.record.Servers))
	p.wide = wide
}

// many reports whether the screen shows several servers.
func (m topModel) many() bool { return m.now.parts != nil }

// chosen is the device under the cursor, a nameless one if there is none.
func (m topModel) chosen() topDeviceRecord {
	if m.cursor >= len(m.record.Devices) {
		return topDeviceRecord{}
	}
	return m.record.Devices[m.cursor]
}

// device shows one device.
func (m topModel) device(p *printer) {
	d := m.chosen()
	writeTable(p, topDeviceColumns(m.many()), []topDeviceRecord{d})
	p.printf("\n")
	if d.Failure != nil {
		writeFields(p, []field{{"failure", d.Failure.Message, bad}})
	}
	writeFields(p, healthFields(d.HeartbeatAge, d.Heartbeat, d.Diagnostic))
	p.printf("\n")
	writeMemories(p, d.Memories)
	p.printf("\n")
	var own []topChannelRecord
	for _, c := range m.record.Channels {
		if c.Device == d.Device && c.Context == d.Context {
			own = append(own, c)
		}
	}
	writeTable(p, topChannelColumns(m.many()), m.channels(own))
}

// channels returns channels in the chosen order, no more than --channels.
func (m topModel) channels(list []topChannelRecord) []topChannelRecord {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b topChannelRecord) int {
		switch m.order {
		case byMessages:
			return cmp.Compare(b.all().Messages, a.all().Messages)
		case byErrors:
			return cmp.Compare(b.all().Errors, a.all().Errors)
		case byTarget:
			return cmp.Or(strings.Compare(a.Context, b.Context), strings.Compare(a.Device, b.Device), a.farEnd.compare(b.farEnd))
		}
		return cmp.Compare(b.all().Bytes, a.all().Bytes)
	})
	return list[:min(len(list), m.opt.channels)]
}
