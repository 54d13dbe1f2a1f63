package access

import "maps"

// methods has the role that each method needs. One that is not here is denied.
var methods = map[string]Role{
	"/nfcomms.v1.DeviceService/ListDevices":   Viewer,
	"/nfcomms.v1.DeviceService/GetDevice":     Viewer,
	"/nfcomms.v1.DeviceService/WatchDevices":  Viewer,
	"/nfcomms.v1.DeviceService/ListPrograms":  Viewer,
	"/nfcomms.v1.DeviceService/ListProcesses": Viewer,
	"/nfcomms.v1.DeviceService/DrainDevice":   Operator,
	"/nfcomms.v1.DeviceService/ResumeDevice":  Operator,
	"/nfcomms.v1.DeviceService/StartProgram":  Operator,
	"/nfcomms.v1.DeviceService/StopProgram":   Operator,
	"/nfcomms.v1.DeviceService/ResetDevice":   Admin,
	"/nfcomms.v1.DeviceService/LoadProgram":   Admin,

	"/nfcomms.v1.ChannelService/ListChannels":  Viewer,
	"/nfcomms.v1.ChannelService/GetChannel":    Viewer,
	"/nfcomms.v1.ChannelService/WatchChannels": Viewer,
	"/nfcomms.v1.ChannelService/OpenChannel":   Operator,
	"/nfcomms.v1.ChannelService/CloseChannel":  Operator,

	"/nfcomms.v1.MessageService/SendMessage":    Operator,
	"/nfcomms.v1.MessageService/ReceiveMessage": Operator,

	"/nfcomms.v1.DiagnosticService/GetDiagnostics": Viewer,
	"/nfcomms.v1.DiagnosticService/PingDevice":     Viewer,
	"/nfcomms.v1.DiagnosticService/WatchLatency":   Viewer,

	"/nfcomms.v1.EventService/ListEvents":  Viewer,
	"/nfcomms.v1.EventService/WatchEvents": Viewer,

	"/nfcomms.v1.GroupService/ListGroups": Viewer,

	"/nfcomms.v1.FabricService/GetFabric": Viewer,
	"/nfcomms.v1.FabricService/ListNodes": Viewer,
	"/nfcomms.v1.FabricService/GetRoute":  Viewer,
	"/nfcomms.v1.FabricService/CutLink":   Admin,
	"/nfcomms.v1.FabricService/MendLink":  Admin,
	"/nfcomms.v1.FabricService/TestLink":  Admin,

	"/nfcomms.v1.BoardService/ReadRegister":    Admin,
	"/nfcomms.v1.BoardService/WriteRegister":   Admin,
	"/nfcomms.v1.BoardService/WaitInterrupt":   Admin,
	"/nfcomms.v1.BoardService/SwitchInterrupt": Admin,

	"/nfcomms.v1.VersionService/GetVersion": Viewer,

	"/grpc.health.v1.Health/Check": Viewer,
	"/grpc.health.v1.Health/List":  Viewer,
	"/grpc.health.v1.Health/Watch": Viewer,

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      Viewer,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": Viewer,

	// Channelz shows who else is connected and from where.
	"/grpc.channelz.v1.Channelz/GetTopChannels":   Operator,
	"/grpc.channelz.v1.Channelz/GetServers":       Operator,
	"/grpc.channelz.v1.Channelz/GetServer":        Operator,
	"/grpc.channelz.v1.Channelz/GetServerSockets": Operator,
	"/grpc.channelz.v1.Channelz/GetChannel":       Operator,
	"/grpc.channelz.v1.Channelz/GetSubchannel":    Operator,
	"/grpc.channelz.v1.Channelz/GetSocket":        Operator,
}

// Methods returns the role that each method of nfcomms.v1, and of gRPC's own
// services, needs, by full name. The map is the caller's: an application that
// serves more adds its methods.
func Methods() map[string]Role { return maps.Clone(methods) }
