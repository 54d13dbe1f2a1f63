// Package hostile makes a device that breaks the rules on purpose: what a driver
// must survive. A plan says what is wrong and when; random choices are
// from a seed, so that a run can be had again.
//
// A plan is a list of faults, separated by commas:
//
//	KIND[@FIRST][+EVERY][:WHERE]
//
// The fault strikes at the FIRST event of its kind, counted from 1, which is
// where it starts by default, and with EVERY again at each EVERY-th after it.
// Events are counted over all epochs of the device. WHERE narrows them: to a type
// of message to the host (direct, begin, ack, done, withdrawn, aborted, close,
// error, ready), for lose to one of the host (direct, begin, list), to the
// messages of the control channel (control), or to DMA accesses (dma). Without it
// a fault looks at the messages it makes sense for, of all channels but control;
// die, hang, mute, gone and flip look at all.
//
// Kinds lists the kinds.
package hostile
