"""The layout of the screens; the main one by the classes that its size and its state give it."""

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
ScrolledLines { scrollbar-size: 0 0; }
#context, #health { padding: 0 0 0 1; }
#drawer { display: none; }
.columns #panes, .areas #panes { layout: horizontal; }
.columns #left, .areas #left { height: 1fr; width: 42; border-right: vkey ansi_bright_black; }
.columns #right, .areas #right { height: 1fr; }
.columns Pane, .areas Pane { height: 1fr; }
.columns #pane-context, .areas #pane-context { height: 2fr; }
.columns .body, .areas .body { display: block; }
.areas #drawer { display: block; width: 40; height: 1fr; border-left: vkey ansi_bright_black; }
.ascii .columns #left, .ascii .areas #left { border-right: ascii ansi_bright_black; }
.ascii .areas #drawer { border-left: ascii ansi_bright_black; }
.zoomed #left, .compact #left { border: none !important; }
.zoomed Pane, .zoomed #left, .zoomed #right { display: none; }
.compact Pane, .compact #left, .compact #right { display: none; }
.zoomed .open, .compact .open { display: block; height: 1fr; }
.zoomed #left.has-open, .zoomed #right.has-open { display: block; width: 1fr !important; }
.compact #left.has-open, .compact #right.has-open { display: block; width: 1fr !important; }
.zoomed #drawer, .compact #last { display: none; }
.tiny #panes, .tiny #last, .tiny #footer, .tiny #status { display: none; }
.tiny #tiny { display: block; }
.told #banner { display: block; }
Page { background: ansi_default; layout: vertical; }
Page .edge { height: 1; width: 1fr; }
Page ScrolledLines { height: 1fr; width: 1fr; scrollbar-size: 0 0; background: ansi_default; }
Confirm { align: center middle; background: transparent; }
Confirm > Vertical {
    width: 72; max-width: 100%; height: auto; padding: 0 1; border: solid ansi_yellow;
    background: ansi_default;
}
Confirm LinesView { height: 6; width: 1fr; }
Prompt { align: left bottom; background: transparent; }
Prompt > Vertical { height: 10; width: 1fr; background: ansi_default; border-top: solid ansi_bright_black; }
Prompt LinesView { height: 8; width: 1fr; }
Prompt Input { height: 1; border: none; padding: 0 1; background: ansi_default; }
.ascii Confirm > Vertical, .ascii CopyMenu > Vertical { border: ascii ansi_yellow; }
.ascii Prompt > Vertical { border-top: ascii ansi_bright_black; }
FormScreen { background: ansi_default; layout: vertical; }
FormScreen .edge { height: 1; width: 1fr; }
FormScreen .told { height: auto; max-height: 8; width: 1fr; }
FormScreen ScrolledLines { height: 1fr; width: 1fr; scrollbar-size: 0 0; background: ansi_default; }
"""
