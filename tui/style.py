"""The layout of the main screen, by the classes that its size and its state give it."""

LAYOUT = """
Screen { background: ansi_default; color: ansi_default; }
ToastRack { display: none; }
MainScreen { layout: vertical; background: ansi_default; overflow: hidden hidden; }
#status, #last, #footer, .head { height: 1; width: 1fr; }
#banner { height: 1; display: none; }
#tiny { display: none; height: 1; }
#panes { height: 1fr; width: 1fr; layout: vertical; }
#left, #right { height: auto; width: 1fr; layout: vertical; }
.body { display: none; height: 1fr; width: 1fr; background: ansi_default; scrollbar-size: 0 0; }
Pane { height: 1; width: 1fr; background: ansi_default; }
.has-open { height: 1fr !important; }
.open { height: 1fr; }
.open .body { display: block; }
#drawer { display: none; }
.columns #panes, .areas #panes { layout: horizontal; }
.columns #left, .areas #left { height: 1fr; width: 46; border-right: vkey ansi_bright_black; }
.columns #right, .areas #right { height: 1fr; }
.columns Pane, .areas Pane { height: 1fr; }
.columns .body, .areas .body { display: block; }
.areas #drawer { display: block; width: 56; height: 1fr; border-left: vkey ansi_bright_black; }
.zoomed Pane, .compact Pane, .zoomed #left, .compact #left, .zoomed #right, .compact #right { display: none; }
.zoomed .open, .compact .open { display: block; height: 1fr; }
.zoomed .has-open, .compact .has-open { display: block; width: 1fr; border: none; }
.zoomed #drawer, .compact #last { display: none; }
.tiny #panes, .tiny #last, .tiny #footer, .tiny #status { display: none; }
.tiny #tiny { display: block; }
.told #banner { display: block; }
"""
