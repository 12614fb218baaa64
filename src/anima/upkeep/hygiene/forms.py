"""Forms: the table of grammatical forms in which one statement can be made.

Promise: ordinary English, about people, work, machines, health, travel and things, and no more. Nothing here knows a home.
Not here: how a line is held against them (turns).
"""

# Each row: the form that stands for all, then the others. A, B, C are any words; N is what somebody has, in three words at
# most, and K what there is one of; P is a telephone number, M a mail address, I an address of numbers, and V begins with a
# number. "x|y" is either, "?x" may be missing, and "be" is any form of to be. "!" before a row: of A there is one B at a time.
FORMS = """
! A phone P < A 's ?work|mobile|cell|private|direct phone|mobile|cell|telephone ?number be P < A 's ?phone number be P
  < phone|mobile|cell|telephone ?number of|for A be P < P be A 's ?phone|mobile|cell|telephone number|phone|mobile
  < P be ?phone|mobile|telephone number|phone of|for A
  < A can be reached|called|phoned at|on|under|by|via ?phone ?at|on P < you can reach|call|phone A at|on|under P
  < A be reachable at|on|under|by|via ?phone ?at|on|under P < call|phone|ring|dial|reach A at|on|under P
  < to reach|call|phone|ring A dial|call|use P < dial P to|for ?reach A < A has phone ?number P
  < A picks|answers ?up ?phone on|at P
! A email M < A 's ?work|private email|mail|e-mail ?address|account be M < email|mail|e-mail ?address of|for A be M
  < M be A 's email|mail ?address < A can be reached|emailed at|under|via|by M
  < A be reachable at|under|via|by ?email ?at M < email|mail|write|reach A at|under|via M < write|mail to A at M
  < send ?email|mail|mails|emails to|for A to M < A uses M for|as email|mail ?address
  < email|mail|mails for|to A go|goes to M < A reads email|mail at M < M be ?email|mail address of|for A < M reaches A
! A ip I < A 's ip ?address be I < A 's address be I < ip|address ?address of|for A be I
  < I be A 's ip|address ?address < I be ?ip address of|for A < A has ip|address ?address I
  < A be reachable|available|accessible|found at|under I < A can be reached|found at|under I
  < A sits|lives|listens at|on I < A resolves|answers|responds to|at|on I
! A port V < C serves|runs|exposes|publishes|offers A on|at|via port V
  < A listens|listening|runs|running|serves|answers on port V < A 's port be V < port of|for A be V
  < port V be used|taken|served|occupied by A < port V belongs|goes to A < port V be A 's ?port
  < A uses|has|occupies port V < A can be reached on|at|via|through|under port V < A be on port V
  < you reach A on|at|via|through port V < port V be where A listens|runs < V be port of|for A
  < V be port A listens|runs on < A binds|bound to port V
! A version V < A be on|at version|release V < A runs|uses|running version|release V
  < A 's ?current version|release be V < ?current|installed version|release of A be V
  < version V of A be installed|running|used|deployed|live < A be running ?version V
  < version|release of A in use|production be V < A has version V ?installed
! A lives in B < A vive en B < A reside en B < A wohnt|lebt in|im B < A lives|resides|dwells in|near B
  < A be living|residing|settled|resident|domiciled in B
  < A be based in|out ?of B < B be where A lives|resides < B be ?city|town|place where A lives|resides
  < B be ?city|town A lives in < A 's home|residence|house|place|domicile|household be in|at ?city|town ?of B
  < A makes|made ?home in B < A calls B home < B be what A calls home < A has|keeps|owns home|place|residence in B
  < A be resident|inhabitant of B < home|residence of A be in B < B be home to|of A
  < A 's city|town|place of residence be B < A 's home|hometown ?town|city be B < B be A 's home ?town|city
  < B be A 's city|town|place of residence
! A address B < A lives|resides at B < A 's ?home|postal|street address be B < ?home|postal address of A be B
  < B be A 's ?home|postal|street address < B be ?home|postal address of A < A can be found|visited at B
! A works at B < A trabaja en|para B < A arbeitet bei|für|beim B < A works|working at|for|with B < B employs A
  < B be employing A < A be employed by|at|with B
  < A 's ?current employer be B < B be A 's ?current employer
  < A has|holds ?job|position|post|role job|position|post|role at|with B < A be on ?payroll payroll|staff of|at B
  < B has A on ?its payroll|staff < A be ?staff employee of|at B < B be where A works
  < B be ?company|firm A works for|at < A 's workplace|company|firm|work|job be ?at|with B
  < B be A 's workplace|company|firm < A earns ?living at|with B < A be working at|for|with B < employer of A be B
  < A draws|gets salary|wage|pay|paycheck from|at B < B pays A 's salary|wages < A 's paycheck comes from B
  < A be at work for B
! A works as B < A trabaja de|como B < A arbeitet als B < A es B de profesión < A ist B von beruf
  < A works|working|worked|employed|serves as B < A be B by trade|profession|training|occupation
  < by trade|profession|occupation A be B < A 's ?job job|profession|occupation|trade|title ?title be ?that ?of B
  < B be A 's job|profession|occupation|trade < A earns|makes living ?working as B < A be employed|working as B
  < A has job as B < A makes|earns living B < for living A be B < A 's job be being B
  < job|profession|occupation of A be B
! A born B < A be born on|in ?on B < A 's birthday|birthdate be ?on B < A 's ?date date|day of birth be ?on B
  < A born on|in B < A 's birth date be B < A celebrates|has birthday on|every|each B < B be A 's birthday|birthdate
  < B be ?day when A be born < B be day A be born < A 's birthday falls|lands|comes on B
  < birthday of A falls|lands|comes|be on B < A came into world on B < birthday|birthdate of A be ?on B
  < date|day of birth of|for A be B < B be birthday|birthdate of A < B be A 's date|day of birth < A has birthday B
  < A 's birth be on B < A turns year older on|every B
! A born B < A be native of B < A 's birthplace|birth ?place be B < B be birthplace of A
  < birthplace|birth ?place of A be B < A came into world in B < B be ?place|city|town where A be born
  < B be A 's birthplace < A hails|comes ?originally from B < A be originally from B < A be from B ?originally
! A marry B < A be married to|with B < A 's ?lawful husband|wife|spouse be B < B be A 's husband|wife|spouse
  < A and B be|got ?husband|both married ?couple|to ?each|one ?other|another
  < A and B be husband|wife and wife|husband < A and B be married ?couple < A be husband|wife|spouse of B
  < A has B as|for husband|wife|spouse < A shares|has marriage with B
! B manages A < A reports to B < A reports directly to B < B supervises|oversees|line-manages A
  < B be A 's ?line|direct manager|boss|supervisor|superior|lead
  < A 's ?line|direct|team manager|boss|supervisor|superior|lead be B
  < A be managed|supervised|overseen|led|headed|coordinated by B < A works under B < A answers to B
  < ?line|direct|project|team manager|boss|supervisor|leader|lead|head of A be B
  < B be ?line|project|team|the manager|boss|supervisor|leader|lead|head of|for|on A
  < A 's ?project|team|product lead|leader|head be B < B leads|heads|coordinates|directs|manages A
  < B be in charge of A < B be responsible for A < responsibility for A lies|rests with B < A be B 's responsibility
  < B has A as ?direct report < A be B 's ?direct report
  < A be under B 's leadership|responsibility|management|supervision < under B 's leadership|management A
  < B heads|leads up A < A has B as ?project|line lead|manager|boss|head|leader
  < B be one running|leading|heading|managing A < B be running|leading|heading|managing A < A be maintained by B
  < B maintains A < B be maintainer of A < A 's maintainer be B
  B looks after A < B takes|took care of A < A be looked after by B < A be in hands of B < B cares for A
  < B be who looks after A
! A due B < A 's deadline falls|lands|comes on B < deadline of|for A falls|lands|comes on B < A has B as ?its deadline
  < A be due ?on|by|in B < A 's deadline|due ?date be ?on B < deadline|due ?date of|for A be ?on B
  < B be deadline|due ?date for|of A < A must be finished|done|delivered|completed|submitted|ready|shipped by|on B
  < A has deadline of|on B < B be when A be due < B be A 's deadline
  < A be to be finished|done|delivered|completed|ready|submitted|shipped by B < deadline A be B
! A written in B < A be written|implemented|coded|programmed|developed|built in|with|using B
  < B be language ?of A ?be ?written ?in
  < A 's ?programming|source|implementation language|code|codebase be ?written ?in B
  < A uses B as ?its ?programming language < language of|behind|for A be B
  < code|codebase|source of A be ?written ?in B < B be what A be written|built|coded in < B powers A
  < programming|implementation language of A be B
! A os B < A 's operating|os system be B < operating|os system of|on A be B < B be A 's operating|os system
  < A uses|has B as ?its operating|os system < A 's os be B < os of|on A be B < B be os|operating ?system of|on A
  < operating|os system A runs be B
  A runs B < A be hosted|deployed|running|installed on|at|in B < A runs|lives|sits on B < B hosts|houses A
  < B be where A runs < B be host of|for A < A 's host|server|machine be B < host of A be B
  < A be run|hosted|served by B < A has B installed|running < B be installed|running|deployed on A < A has B on it
  < A be powered by B < A boots B < you find|will find A on B
! B owns A < A belongs to B < B be ?proud|legal owner of A < B possesses A < A 's owner be B < A be owned by B
  < A be property of B < owner of A be B < A be in B 's possession < A be B 's property
! A drives car B < A drives B < A 's car|vehicle|ride be B < A has B as car < A gets|drives around in B
  < B be A 's car|vehicle < car A drives be B < car|vehicle of A be B < B be ?car what A drives < A be driver of B
  < A be driving B
! A cost V < A cuesta V < A kostet V < precio de A es V < preis von A ist V < A costs|cost V
  < price|cost of|for A be V < A 's price|cost be V < A sells|sold|goes|retails for|at V
  < A be priced|sold at|for V < A comes|came|amounts to|at V < V be price|cost of|for A < you pay V for A
  < A has price ?tag of V < A be available for V < A be V to buy
  A bought B for V < A paid V for B < A spent V on B < B cost A V
  < A got|acquired|purchased|ordered|picked B ?up for V < B was|were bought|purchased|acquired by A for V
  < A bought|purchased B ?at|for ?a ?price ?of V < A laid|shelled|forked out|over V for B < for B A paid V
  < price A paid for B be V < A 's purchase of B cost V < B set A back V < V be what A paid for B
  < for V A bought|got|purchased B
! A earns V < A 's ?annual|monthly|yearly salary|wage|income|pay be V < salary|wage|income|pay of A be V
  < A makes V yearly|monthly < A gets|receives|has salary|wage|income|pay of V < A gets paid V
  < V be A 's salary|wage|income|pay < A takes home V
  B borrowed C from A < A let B borrow|have|use C < A allowed B to borrow C < A lent C to B < A loaned C to B
  < C be on loan from A to B < B has C on loan from A < B has borrowed C from A < C was|were lent|loaned to B by A
  < C was|were borrowed from A by B < C was|were lent|loaned by A to B < A has lent|loaned C to B
  < C be lent to B by A < C be borrowed by B from A
! A expires B < A expires|expired|lapses|lapse|expiring on|in|at B
  < A be valid|good|in until|till|through|to ?force ?until B < A runs out on|in|at B
  < expiry|expiration ?date of|for|on A be ?on B < A 's expiry|expiration ?date be ?on B
  < B be when A expires|lapses|ends < A 's validity ends|expires on B < A ceases to be valid on B
  < A stays|remains valid until|till B < validity of A ends|expires on B < A has expiry|expiration ?date of|on B
  < B be expiry|expiration date of|for A < A ends|finishes|terminates|concludes on|in B < A comes to end on|in B
  < B be last day of A < B be when A comes to ?an end < B be A 's last day < end ?date of A be ?on B
  < A 's end ?date be ?on B < A be valid ?only until B
! A blood type B < A 's blood type|group be B < A has blood type|group B < A be blood type|group B
  < blood type|group of A be B < A has ?type B blood < B be A 's blood type|group < A 's blood be ?type|group B
  < A belongs to blood group|type B < A has B as ?blood group|type
! A height V < A be V tall < A 's height be V < A stands|measures V ?tall ?high < height of A be V < A has height of V
  < A be V in height < V be A 's height
! A weighs V < A 's weight be V < weight of A be V < A has weight of V < A tips scales at V < A comes in at V
  < V be A 's weight < A be V heavy
! A age V < A be V years old < A 's age be V ?years < A be V years of age < A be aged V < A be V - year - old
  < age of A be V < A turned V < A be age V
  A allergic to B < A be allergic|hypersensitive to B < A has|suffers ?from allergy|allergies to B < A has B allergy
  < A suffers from B allergy < A 's allergy be to B < A 's allergic to B < A reacts badly|allergically to B
  < B gives|causes A allergic reaction < B triggers|causes allergic reaction|reactions in|for A
  < A gets|has allergic reaction|reactions from|to B < B sets off A 's allergy < A 's B allergy
  < A has known allergy to B
  A fears B < A be afraid|scared|terrified|frightened of|by B < B scares|frightens|terrifies A
  < A has fear|phobia of B < A 's fear be ?of B < A be fear of B
  A prefers B over C < A prefers B to|over|than|rather ?than C < A likes|loves|enjoys B better|more than C
  < A would choose|pick|take B over C
  < A would rather|sooner ?have|drink|eat|take|use|get B than ?have|drink|eat|take|use C
  < given choice A ?would takes|picks|chooses|prefers|take|pick|choose B over C < A favours|favors B over C
  < A chooses|picks|takes B over C < B beats C for A < for A B beats C < A opts for B over|rather ?than C
  < B rather than C be A 's preference
! A prefers N B < A 's favourite|favorite|preferred N be B < B be A 's favourite|favorite|preferred N
  < A 's N of choice be B < N A likes|loves|enjoys best|most|more be B < A 's top|best-loved|go-to N be B
  < favourite|favorite|preferred N of A be B < B be favourite|favorite|preferred N of A
  < of all N A likes|loves|enjoys|prefers B best|most < A likes|loves B best|most of|among all N
  < A ranks B as ?best|favourite N < when it comes to N A prefers|likes|favours|favors B
  < A ranks B above|over all other N < A likes|loves|enjoys no N better|more than B
  < no N pleases A more|better than B < A prefers B to|over every|all|any other N < N A prefers|favours be B
  < B be N A prefers|favours|likes ?best|most
  A likes B < A be ?big|huge|great fan|lover of B < A be fond of B < A be into B < A be keen on B
  < A has soft spot for B < A has weakness for B < A takes pleasure in B < B be something A likes|enjoys|loves
  < A finds pleasure|joy in B < B brings A joy < A gets ?lot|much enjoyment|pleasure from|out ?of B
  < A be partial to B
  A hates B < A can not stand|bear|abide|tolerate B < A be no|not ?a fan of B < A does not care for B
  < A has no time for B < A can't|cannot stand|bear|abide B < A dislikes|detests|loathes B
  < B be not to A 's taste|liking < A has dislike|aversion of|for|to B < A isn't|not ?a fan of B
  < B be something A hates|dislikes|detests
  A studies B < A be studying|reading B < A majors|majoring in B < A be enrolled in|for B
  < A be doing|taking|pursuing ?degree degree|studies|course in B < A be B student|major
  < A 's major|subject|degree|course be ?in B < A 's field of study be B < A be student of B
  A attends B < A goes to school|university|college at B < A be pupil|student|enrolled at B < A studies at B
  < B be where A studies < A 's school|university be B
  A graduated B < A graduated from|at B < A got|received|earned|holds|has|took|completed degree from|at B
  < A finished|completed ?studies|degree at B < A 's degree be from B < A be graduate|alumnus|alumna of B
  < A 's alma mater be B
  A joined B < B hired|recruited|onboarded A < B took on A < B took A on < A was|were hired|recruited|taken by|on B
  < A started|began ?work|working|job|out at|with|for B < A started ?new job|work at|with B
  < A came on board at|with B < A became part|member|employee of B < A has worked|been at|for|with B since
  < A signed on with B < A has been ?working|employed at|with|for|by B
  A left B < A quit ?job|post|position at B < A resigned|departed from B < A stopped working at|for B
  < A handed in notice at B < A 's last day at B be < A gave ?up notice at B < A parted ways with B
  A subscribes to B < A be subscriber of|to B < A has subscription to|of|for B
  < B has A as|among ?its subscriber|subscribers < A be subscribed to B < A takes subscription to B
  A works on B < B has A on|in ?its team < A be part|member of team of|behind|for B
  < A belongs to team of|behind|for B < A be on team of|for|behind B < A be in team of|for B < A contributes to B
  < team of B includes A < A be ?one among ?people ?who working on B
  A depends on B < A requires B < A needs B < A relies|builds on B < B be ?dependency|requirement of|for A
  < A has B as|among ?its dependency|dependencies|requirement < A be dependent|reliant|based on B
  < A 's dependencies include B
  A mentors B < B has A as|for mentor < A acts|serves as mentor to|for|of B < B be A 's mentee|protege
  < A be B 's mentor < A be mentor of|to|for B < B 's mentor be A < B be mentored|coached by A < B be mentee of A
  A called B about C < B got|received|had ?phone|telephone call from A about C
  < A phoned|rang|telephoned|called B about C < A gave B ring|call about C < A rang B up about C
  < A spoke|talked to|with B on|by phone|telephone about C < B was|were called|phoned|rung by A about C
  < A made ?phone call to B about C < A and B spoke|talked on phone about C
  A listens to B < ?music A listens to includes B < A has B among music ?they|he|she listen|listens to
  < B be ?among|music ?music|something|what A listens to < A likes|enjoys listening to B < music A listens to be B
  A returned B to C < A took|brought|sent|gave B back to C < B was|were returned|brought|taken ?back to C by A
  < B went back to C from A
! A desk B < A sits at desk B < desk B be assigned|given|allocated to A
  < A be|has given|assigned|been|allocated ?given|assigned desk B < A 's desk be B < desk B be A 's ?desk
  < desk B be where A sits < desk B belongs to A < A has desk B < A occupies desk B
! A started job B < A has been|be in|at ?current|present job|position|post|role since B
  < A started|began|took ?up ?in ?current|present|new job|position|post|role on|in B < A 's start date be ?on B
  < A holds|has held ?current|present job|position|post since B < B be when A started ?in ?current job|position
! A N expires B < A be under N until|till B < N of|on|for A expires|ends|lapses ?on|at|in B
  < N of|on|for A runs out on|in B < A 's N expires|ends|lapses ?on|at|in B < A 's N runs out on|in B
  < A has|holds N that expires|ends|lapses|runs ?out on|in B < N of|on|for A be valid|good until|till|through B
  < A 's N be valid|good until|till|through B < expiry|expiration|end date of A 's N be B
  < expiry|expiration|end date of N of|on|for A be B < A be covered by N until|till B
  < B be when A 's N expires|ends|lapses
  A prefers B < A likes|loves|enjoys B best|most < A would rather|sooner have|take|get|use|drink|eat B
  < A 's preference ?on|for|in be ?for B < A likes it best B < A goes for B
  A visited B < A paid B visit < A went|came to see B < A had appointment at|with B < A saw B
  < A went|travelled|traveled to B < A was in B < A made|took trip|visit to B < A paid visit to B < A spent time in B
  < B was visited by A < A 's visit|trip to B be|was|took ?place < A has been to|in B < A came to see B
  < A dropped in|by on|at B < A travelled|traveled to see B
  A bank B < A banks with|at B < A has ?bank|current|checking|savings account at|with B
  < A 's ?bank bank|account be ?at|with B < A keeps money at|with|in B < B be A 's bank < A 's account be at|with B
  A insured B < A be insured with|by|through B < A 's insurer|insurance ?company be ?with B
  < A has ?insurance|policy insurance|policy with|from B < B insures A < B be A 's insurer|insurance ?company
! A sits B < A sits in|at|on B < A 's ?desk desk|seat|office|workplace|workstation be ?in|at|on B
  < A be sitting|seated in|at|on B < you find A in|at|on B < A has desk|office|seat in|at|on B
  < desk|office|seat of A be in|at|on B < B be where A sits
  A member B < A be ?active|paying|the member of|in B < A belongs to B < B counts A among ?its members
  < B has A as|among ?its|one member|members < A has|holds membership in|of|at|with B
  < A 's membership be ?with|in|at B < A be part of B
  A speaks B < A be ?fluent|native speaker of B < A be fluent in B < A can speak B < A be B speaker|speaking
  < A has ?good command of B < A knows how to speak B < A can converse in B < B be spoken by A
  < B be language A speaks < A speaks fluent B
  A plays B < A be B player < B be played by A < A be ?keen player of B < B be ?instrument|sport|what A plays
  < A 's instrument|sport be B
  A takes B < A be prescribed|taking B < A was|has prescribed|put|been on|prescribed B < A has prescription for B
  < A 's medication|medicine be B < A be treated with B < B be what A takes < A has to take B < A was prescribed B
  < A 's prescription be ?for B < B was|is prescribed to|for A < A be being treated with B < A needs to take B
  A teaches B < A be B teacher|instructor|tutor < B be taught by A
  < A gives|offers lessons|classes|courses|instruction in B < A be teacher|instructor|tutor of|for B
  < A gives B lessons|classes < A 's subject be B
  A commutes B < A goes|gets|travels|commutes to work|office by|on|in|with B < A commutes by|on|in|with B
  < A takes|rides B to work|office < A uses B to ?get ?to commute|work < A 's commute be by B
  < A 's way to work be by B < A uses B for commute < A 's commute be B
  A paid C for B < A covered B of C
! A N size V < A wears|takes|has|needs size V N < A wears|takes|has|needs size V in N < A 's N size be V
  < A 's N be size V < A 's size in N be V < in N A takes|wears size V
! A licence B < A be released|published|licensed|distributed|available under B < A 's licence|license be B
  < A uses|has B as ?its licence|license < licence|license of|for A be B < B be licence|license of|for A
  < A be under B licence|license < A has B licence|license
! A N is B < name of A 's N be B < A 's N be called|named B < A 's N 's name be B < B be name of A 's N
  < A 's N goes by ?name ?of B < A 's N answers to B < A named|called|calls N B
! A K is B < B be K who|that looks|treats|sees|cares after|for|to A < B be K who treats|sees A < K B belongs to A
  < K B be ?that of|assigned|given ?to A < A be ?being done|made|built|carried ?out for B as K
  < to call|reach A ?at ?office use|dial K B < dial K B for A < A be assigned|given K B < A has|carries|gets|have K B
  < A has|have K of|at B < A 's K be B < K of|for|on A be B < B be A 's K < B be K of|for|on A < A has B as|for ?its K
  < A 's K comes|amounts|runs to B < K of|for A comes|amounts|runs to B
  < K A pays|gets|has ?monthly comes|amounts|be ?to B < A pays B in|as|for ?a K < A has K of B
! A hotel C B < A 's ?usual|regular|favourite hotel in C be B < B be A 's ?usual|regular|favourite hotel in C
  < in C A stays|sleeps at|in B < when in C A stays|sleeps at|in B < A stays|sleeps at B when in C
  < A stays|sleeps at B in C
! A N amount V < V of N be installed|built in|into A < A has|comes|be|with ?equipped|fitted ?with V of N
  < A be equipped|fitted with V of N < A comes with V of N < A has V of N < A 's N amounts|comes to V
  < N of|on|in A amounts|comes to V < A 's N be V < N of|on|in A be V < A 's N holds V < A holds V of N
! A located B < A be located|housed|situated|kept|stored in|at|on B < location of A be B < A 's location be B
  < A can be found in|at|on B < B be where A be ?located|housed|kept|stored < B be location of A
  < C keeps|stores A in|at|on B < B be where C keeps|stores A
  A N is B < A has|keeps|got N called|named B < A has B as|for N < A sees|uses|trusts|consults B as N
  < B acts|serves as A 's N < B be A 's N < B be N of A < N of A be B < A 's N be B < B be N for A
  < as N A has|uses|sees B < A goes to B as N
! A named B < A heißt B < A se llama B < A be called|named B < A goes by name of B
"""
