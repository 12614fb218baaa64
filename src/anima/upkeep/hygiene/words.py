"""Words: what in a note carries its fact and what does not, which words say the same, and phrases that say it in several.

Promise: tables of ordinary language, and no more: English in breadth, Spanish and German for what notes are made of, a few
words of French, Portuguese and Italian. A row of SAME stands for its first word. Nothing here knows a particular home.
Not here: how a line is taken apart with them (reading).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from anima.text.words import stem


def plain(word: str) -> str:
    """A word without case and accents, as the tables are read."""
    if word.isascii():
        return word.lower()
    bare = unicodedata.normalize("NFD", word.casefold())
    return "".join(char for char in bare if not unicodedata.combining(char))


def _set(text: str) -> frozenset[str]:
    return frozenset(plain(word) for word in text.split())


# Words that tell how a thing is said, not what.
SMALL = _set(
    """a an the and or of to in on at for with by is are was were be been being am it its this that these those his her hers
    their theirs my your our as from has have had having do does did doing done will would shall should can
    could may might he
    she they we you i him them me us there here also who whom which whose what when where so than then very
    really just quite
    already currently now still about into onto upon within through via over around during per but too both own
    such some any
    that's there's it's user owner himself herself themselves itself oneself one ones thing things stuff etc
    please though
    however actually basically simply usually generally normally typically mostly mainly always ever yet even back up
    something anything someone somebody everything anyone along at regularly apparently ok okay well let lets re
    mr mrs ms dr s d ll ve m o else while if as able
    el la los las un una unos unas lo al del de que en y e o u es son era fue ser esta estan este esta estos
    estas ese esa eso
    con por para su sus mi mis tu tus se le les me te nos ya muy mas pero como cuando donde tambien hay ha han
    he haber sido
    siendo estar suele suelen normalmente generalmente siempre cada ella ellos ellas usuario usuaria uno entre
    sobre desde
    the der die das den dem des ein eine einen einem einer eines und oder ist sind war waren sein seine seinen
    ihr ihre ihren
    ihrem ihrer mein meine mit von vom im am an auf aus bei beim zu zum zur fur furs ins ans ums in nach uber
    unter er sie es
    wir man hat haben hatte hatten wird werden wurde wurden worden kann konnen soll sollte auch schon noch sehr
    immer meist
    meistens normalerweise dass als wie wenn wo da so nur dann denn sich ihm ihn uns regel gern nutzer nutzerin benutzer
    le les du une et est sont pour sur il elle au aux ce cette avec dans os as um uma sao com em na no da dos das ao
    gli di che sono per il lo con della del"""
)
NEGATIONS = _set(
    """not no never nor none neither without cannot nobody nothing nowhere nicht kein keine keinen keinem keiner nie niemals
    ohne niemand nichts sin nunca ni jamas tampoco nadie nada ningun ninguna ninguno ne pas jamais sans nao nem
    sem non mai
    senza"""
)
NUMBERS = {
    word: number
    for number, words in {
        "2": "two dos zwei deux",
        "3": "three tres drei trois",
        "4": "four cuatro vier quatre",
        "5": "five cinco funf cinq",
        "6": "six seis sechs",
        "7": "seven siete sieben sept",
        "8": "eight ocho acht huit",
        "9": "nine nueve neun neuf",
        "10": "ten diez zehn dix",
        "11": "eleven elf",
        "12": "twelve doce zwolf",
        "15": "fifteen quince funfzehn",
        "20": "twenty veinte zwanzig",
        "30": "thirty treinta dreissig",
        "40": "forty cuarenta vierzig",
        "50": "fifty cincuenta funfzig",
        "60": "sixty sesenta sechzig",
        "100": "hundred cien hundert",
        "1x": "once",
        "2x": "twice",
        "3x": "thrice",
        "1st": "first",
        "2nd": "second",
        "3rd": "third",
    }.items()
    for word in words.split()
}
WEEKDAYS = _set(
    """monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun lunes martes
    miercoles jueves viernes sabado domingo montag dienstag mittwoch donnerstag freitag samstag sonnabend
    sonntag mo di mi do
    fr sa so"""
)
# What tells that something is only to come, or may.
TO_COME = _set(
    "will shall might could gonna maybe perhaps quizas vielleicht plans planning intends hopes considering thinking"
)
WAS, IS = _set("was were era eran fue fueron war waren"), _set("is are am es son ist sind")
BE_OR_HAVE = _set("is are was were be been being has have had gets got")
FORMER = _set("former formerly previously earlier ex")
# What of the past is no single event; and what tells that something was one.
LASTING = _set("""born native grew raised studied graduated enrolled used formerly former lived based since known written
    married""")
HAPPENED = _set("was were had did got fue fueron war waren wurde hatte")
# Words that, where a line is noted under a day, speak of that day alone.
PASSING = _set("""today tonight yesterday tomorrow hoy ayer heute gestern this morning afternoon evening""")
# Verbs in the past that begin a note of what happened once.
DEEDS = _set(
    """ran went met saw ate drank bought sold paid sent wrote read spoke told gave took made did got came left slept swam
    drove rode flew won lost found built broke fell caught held heard brought taught thought spent kept began
    rang sang set
    put cut hit let gave underwent hosted rebooted threw shot lent hablo llamo compro pago fue vio comio hizo
    envio visito kam ging traf sah kaufte bezahlte rief schrieb"""
)

# What several words say together, by what they are read as. "~" is a denial, and "-" nothing at all.
_PHRASES = """
    used to=formerly;is used to=use;are used to=use;in the past=formerly;at one time=formerly;came into the
    world=born;native
    of=born in;number plate=plate;license plate=plate;licence plate=plate;registration number=plate;registered
    as=plate;backed
    up=backup;backs up=backup;back up=backup;gets backed up=backup;went down=outage;was down=outage;is
    down=outage;without
    pay=volunteer;works without pay=volunteer;home office=homeoffice;work from home=homeoffice;works from
    home=homeoffice;working from home=homeoffice;worked from home=homeoffice;unable to=~;not able to=~;knows how
    to=-;know how
    to=-;able to=-;likes it best=prefer;like it best=prefer;likes to have=take;like to have=take;likes to
    drink=drink;text editor=editor;phone call=phone;shoe size=size shoe;takes a=take;data centre=datacentre;data
    center=datacentre;date of birth=born;due date=due;ip address=ip;email address=email;e mail=email;phone
    number=phone;telephone number=phone;mobile number=phone;operating system=os;wi fi=wifi;runs out=expire;run
    out=expire;ran
    out=expire;valid until=expire;expiry date=expire;expiration date=expire;comes to an end=end;came to an end=end;cut
    down on=reduce;cuts down on=reduce;takes part in=attend;took part in=attend;participates in=attend;participated
    in=attend;makes use of=use;make use of=use;have a look=look;takes over=takeover;took over=takeover;gets along
    with=like;fell ill=ill;is afraid of=afraid;in past=formerly;each other=-;one another=-;on a regular
    basis=-;as a rule=-;for the time
    being=-;at the moment=-;right now=-;these days=-;at present=-;
    would like to get=want;would like to have=want;d like to get=want;d like to have=want;would like to=want;would
    like=want;d like=want;wants to get=want;wants to have=want;likes to get=want;can not stand=hate;can not
    bear=hate;not like=hate;does not like=hate;not fond of=hate;would rather have=prefer;would rather get=prefer;would
    rather take=prefer;would rather=prefer;d rather=prefer;rather than=over;instead of=over;in favour of=prefer;in
    charge of=responsible;takes care of=responsible;take care of=responsible;taking care of=responsible;looks
    after=responsible;look after=responsible;is the one who=-;the one who=-;the person who=-;it was=-;no longer=~;not
    any more=~;not anymore=~;has quit=~;have quit=~;had quit=~;gave up=~;given up=~;has stopped=~;have
    stopped=~;quit=~;stopped=~;stay away from=~;steer clear of=~;to be avoided=~;avoid=~;avoids=~;avoiding=~;refuses
    to=~;nobody except=only;no one except=only;nobody but=only;no one but=only;nobody other than=only;none
    but=only;two times=twice;2 times=twice;3 times=thrice;1 time=once;one time=once;every day=daily;each day=daily;per
    day=daily;a day=daily;every night=nightly;each night=nightly;every week=weekly;each week=weekly;per week=weekly;a
    week=weekly;once a week=weekly;every month=monthly;each month=monthly;per month=monthly;a month=monthly;once a
    month=monthly;every year=yearly;each year=yearly;per year=yearly;a year=yearly;once a
    year=yearly;annually=yearly;annual=yearly;every hour=hourly;once a day=once daily;every morning=mornings;each
    morning=mornings;in the mornings=mornings;in the morning=morning;every evening=evenings;each evening=evenings;in
    the evening=evening;in the afternoon=afternoon;at night=night;has to=need;have to=need;had to=need;needs
    to=need;need to=need;ought to=need;supposed to=need;sign off on=approve;signs off on=approve;signed off
    on=approve;sign off=approve;signs off=approve;signed off=approve;set up=install;gets up=wake;get up=wake;wakes
    up=wake;wake up=wake;got up=wake;picks up=collect;pick up=collect;picked up=collect;drops off=deliver;drop
    off=deliver;turned on=enable;turn on=enable;turns on=enable;switched on=enable;switch on=enable;turned
    off=disable;turn off=disable;switched off=disable;switch off=disable;shut down=disable;takes place=hold;took
    place=hold;take place=hold;comes from=from;is from=from;hails from=from;grew up in=raise;grew up=raise;brought
    up=raise;passed away=die;holds up=delay;holding up=delay;held up=delay;put off=postpone;pushed back=postpone;moved
    back=postpone;called off=cancel;find out=discover;look for=seek;looking for=seek;carried out=perform;carry
    out=perform;carries out=perform;operated on=surgery;operates on=surgery;deal with=handle;deals with=handle;works
    as=job;work as=job;worked as=job;working as=job;by profession=job;by trade=job;for a living=job;is
    employed=work;employed by=work;has a job=work;works for=work;works at=work;lives in=live in;based in=live in;is
    located in=live in;at home=home;because of=due;due to=due;owing to=due;thanks to=due;on account of=due;as
    well=-;at all=-;by default=default;a lot=much;lots of=many;plenty of=many;a couple of=several;a few=several;at
    least=minimum;at most=maximum;no more than=maximum;not more than=maximum;less than=under;fewer than=under;shorter
    than=under;smaller than=under;lower than=under;more than=above;longer than=above;greater than=above;earlier
    than=before;prior to=before;later than=after;as soon as=when;makes noise=noise;allergic to=allergic;has an allergy
    to=allergic;allergy to=allergic;suffers from=have;prone to=get;is called=name;is named=name;goes by=name;known
    as=name;in cash=cash;by car=drive;by bus=bus;by train=train;by bike=bike;by plane=fly;on foot=walk;takes the
    bus=bus;takes the train=train;gets to=go;goes to=go;can be reached at=reach;is reachable
    at=reach;reachable=reach;accessible=reach;listens on=reach;runs on=run;stays at=stay;staying at=stay;due on=due;do
    not=not;se llama=name;se llaman=name;ya no=~;dejo de=~;ha dejado de=~;no soporta=hate;no aguanta=hate;todos los
    dias=daily;cada dia=daily;todas las noches=nightly;cada noche=nightly;todas las semanas=weekly;cada
    semana=weekly;todos los meses=monthly;cada mes=monthly;al mes=monthly;al ano=yearly;todos los anos=yearly;cada
    ano=yearly;todos los lunes=lunes;cada lunes=lunes;todos los martes=martes;cada martes=martes;todos los
    miercoles=miercoles;cada miercoles=miercoles;todos los jueves=jueves;cada jueves=jueves;todos los
    viernes=viernes;cada viernes=viernes;todos los sabados=sabado;cada sabado=sabado;todos los domingos=domingo;cada
    domingo=domingo;tiene que=need;hay que=need;tienen que=need;se encarga de=responsible;es responsable
    de=responsible;a cargo de=responsible;le gusta=like;les gusta=like;le encanta=like;les encanta=like;en
    efectivo=cash;en metalico=cash;trabaja de=job;trabaja como=job;a partir de=desde;por la manana=morning;por la
    tarde=evening;por la noche=night;nicht mehr=~;hat aufgehort=~;aufgehort=~;kummert sich um=responsible;ist
    zustandig fur=responsible;zustandig fur=responsible;zustandig=responsible;verantwortlich fur=responsible;jeden
    tag=daily;taglich=daily;jede nacht=nightly;jede woche=weekly;wochentlich=weekly;jeden
    monat=monthly;monatlich=monthly;im monat=monthly;pro monat=monthly;jedes jahr=yearly;jahrlich=yearly;im
    jahr=yearly;pro jahr=yearly;in der regel=-;mag nicht=hate;kann nicht leiden=hate;am liebsten=prefer;lieber
    als=prefer;muss=need;mussen=need;darf nicht=~;von beruf=job;arbeitet als=job;gearbeitet als=job;arbeitete
    als=job;am morgen=morning;morgens=morning;abends=evening;am abend=evening;nachts=night
"""
# Words that make no other fact of a line. Each row stands for its first word; a word belongs to its first row.
_SAME = """
    own owns owner owned possess possesses belong belongs possession;restart reboot restarted rebooted reboots
    restarts;located location situated housed;vaccinate vaccination vaccine jab vaccinated immunised
    inoculated;subscribe subscriber subscription subscribed subscribes;volunteer voluntary unpaid volunteers
    volunteering;depend depends dependent dependency dependencies rely relies;outage unavailable downtime
    outages;fracture fractured break broke;earn earns earned;marry wedding marriage married wed
    verheiratet casado casada boda hochzeit;move relocate moved relocated moving relocation mudarse mudanza umzug;attend
    attends attended attendance;plate registration registered;mentor mentee mentors mentored;born birthplace
    native;former formerly previously;cancel cancelled canceled scrap;ram memory;disk storage;timezone
    tz;flatmate roommate housemate;sibling siblings;partner girlfriend boyfriend;neighbour neighbor;surname
    lastname;nickname alias;passport pass;folder directory dir;certificate cert;repository repo;ticket
    issue;config configuration settings;monthly month;weekly week;headquarters hq;fee charge;
    author writer;nationality citizenship citizen;expiry expiration expire expires expired lapse;invite invitation
    invited;recommend recommendation recommended;argue argument quarrel;celebrate celebration;translate
    translation;donate donation donated;inherit inheritance inherited;adopt adoption adopted;complain
    complaint;promise promised;injure injury injured;win won victory;sign signed signature;measure
    measured measurement;supply supplies supplied supplier provide provided provider;publish published
    publisher;fund funded funding;sponsor sponsored;
    like enjoy love fond favour adore appreciate gustar gusta encanta mag liebt mogen;prefer preference favourite
    favorite preferir prefiere prefieren bevorzugt lieber;hate dislike detest loathe despise odia detesta hasst;live
    reside residence dwell vive viven vivir wohnt wohnen lebt leben;work employ employer working trabaja trabajan
    trabajar trabajo arbeitet arbeiten gearbeitet arbeitete beschaftigt;job profession occupation career beruf
    profesion;use utilise utilize usage usa usan usar utiliza nutzt benutzt verwendet nutzen;buy bought purchase
    acquire compra compro comprar comprado kauft kaufte gekauft kaufen;sell sold vende vendio verkauft verkaufte;begin
    began begun start commence kick empieza empezo comienza comenzo beginnt begann anfangen fangt;end finish conclude
    complete termina acaba finaliza endet endete;expire lapse caduca vence lauft ablaufen;big large huge great grande
    gross;small little tiny pequeno klein;phone call called calls calling ring rang rung dial telephoned mobile
    cellphone smartphone handset telephone telefono movil handy
    telefon;car automobile auto vehicle coche carro wagen;bike bicycle bici bicicleta fahrrad rad;doctor physician gp
    medico arzt arztin;meet met meeting meetings appointment reunion cita treffen trifft traf termin besprechung;want
    wish desire quiere quieren querer will mochte wunscht;need require must necesita braucht brauchen benotigt;keep
    kept retain store stored guarda behalt;get got receive obtain gets recibe bekommt erhalt;give gave given hand da
    dio gibt gab;show shown display muestra zeigt;fix repair mend repariert arregla reparo;change alter modify edit
    amend cambia cambio andert geandert;child children kid kids hijo hija hijos ninos kind kinder;name named
    nombre llama llamado heisst heissen;tell told inform notify dice dijo sagt sagte;say said state mention
    remark;ask request asked pide pidio bittet fragt;answer reply respond response contesta responde antwortet
    responses;help assist support aid ayuda hilft;cost price cuesta precio kostet preis;pay paid paying paga pago
    pagar zahlt bezahlt;choose chose chosen pick select opt elige wahlt;quick fast rapid speedy rapido schnell;slow
    lento langsam;often frequent frequently;every each;picture photo photograph image foto bild;flat apartment condo
    piso apartamento wohnung;house home casa haus hause;movie film pelicula;holiday vacation urlaub vacaciones
    ferien;trip journey travel viaje reise;lesson class course clase curso kurs unterricht;talk talked speak spoke
    spoken chat habla hablo spricht sprach;look watch view see saw seen mira ve sieht;allergic allergy alergico
    alergica alergia allergisch allergie;born birth birthday birthdate nacio nacimiento cumpleanos geboren
    geburtstag;study learn learnt student estudia estudiante aprende studiert lernt;teach taught instruct tutor ensena
    unterrichtet teacher profesor profesora lehrer lehrerin;mum mom mother mama madre mutter;dad father papa padre
    vater;grandmother grandma granny nana abuela oma;grandfather grandpa abuelo opa;brother hermano bruder;sister
    hermana schwester;wife esposa mujer ehefrau;husband esposo marido ehemann;boss supervisor chief jefe jefa chef
    chefin;colleague coworker workmate companero companera kollege kollegin;go went gone head va van ir fue geht gehen
    ging;come came arrive viene llega kommt kam;drive drove driven conduce fahrt fahren gefahren fuhr;fly flew flown
    flight plane vuela vuelo fliegt flog flug planes flights;walk stroll camina pasea spaziert;write wrote written
    author escribe escribio escrito schreibt schrieb geschrieben;make made create build built produce
    manufacture manufactured manufacturer maker hace hizo macht
    machte gemacht;leave left depart sale salio verlasst;take took taken toma tomo nimmt nahm;eat ate eaten isst
    gegessen;drink drank drunk bebe trinkt;think thought believe reckon piensa cree denkt glaubt;bring brought trae
    bringt brachte;send sent forward envia manda schickt sendet;find found locate encuentra findet fand;lose lost
    pierde verliert verlor;woman women frau;man men hombre mann;person people persona personas gente leute;foot
    feet;sleep slept duerme schlaft;run ran operate;know knew known sabe conoce kennt weiss;sit sat;stand stood;grow
    grew grown;wear wore worn lleva tragt;hear heard oye hort;spend spent gasta verbringt;become became;medicine
    medication drug pill tablet meds pastilla medicamento tablette medikament;cilantro coriander;responsible
    responsibility charge duty responsibilities;handle manage process lead leads gestiona leitet
    fuhrt;summary overview digest resumen ubersicht zusammenfassung;email mail emails mails correo;message text sms
    mensaje nachricht;approve approval authorise authorize permit permits permitted permission allow allowed
    aprueba genehmigt;reject refuse decline
    deny;accounts books ledger bookkeeping;company firm business empresa firma unternehmen businesses;money dinero
    geld;salary wage sueldo gehalt;rent lease alquiler miete;contract agreement contrato vertrag;bill invoice factura
    rechnung;budget presupuesto;password passphrase passcode contrasena clave passwort kennwort;computer pc laptop
    notebook ordenador portatil rechner;screen monitor pantalla bildschirm;server host box machine servidor;database
    db datenbank;backup backups sicherung;deploy deployment release rollout ship despliega;bug defect issue;error
    mistake failure fehler;update upgrade refresh;delete remove erase borra loscht;enable activate activated activa
    aktiviert;disable deactivate desactiva deaktiviert;install instala installiert;reach access accessible connect
    serve serves served serving;plan intend intention planning scheduled planea plant vorhat plans planned;postpone
    delay reschedule aplaza verschoben verschiebt;cancel scrap cancela abgesagt storniert;decide decision resolve
    decidio entschied beschlossen;agree consent acuerda vereinbart agreed agrees;meal dish food comida essen;breakfast
    desayuno fruhstuck;lunch almuerzo mittagessen;dinner cena abendessen;meat carne fleisch;fish pescado
    fisch;vegetarian veggie vegetariano vegetarisch vegetarier;sugar azucar zucker;ill sick unwell enfermo
    krank;surgery operation operated cirugia;pain ache hurt dolor schmerz;noise sound hum humming ruido gerausch;cold
    chilly freezing;hot warm;rain raining;sea ocean mar meer;town city ciudad stadt;country nation pais land;street
    road calle strasse;near nearby beside cerca nahe;shop tienda laden geschaft;school escuela colegio
    schule;university college universidad universitat uni;nurse enfermera enfermero krankenschwester;lawyer attorney
    solicitor abogado abogada anwalt anwaltin;engineer ingeniero ingenieur;carpenter carpintero schreiner
    tischler;plumber fontanero klempner;accountant bookkeeper contable buchhalter;trusted reliable confianza;free
    gratis kostenlos;expensive pricey costly caro teuer;cheap inexpensive barato billig;old aged antiguo viejo alt;new
    nuevo neu;important crucial vital essential importante wichtig;difficult hard tough dificil schwierig schwer;easy
    simple facil einfach leicht;short brief concise corto kurz;long lengthy largo lang;single sole lone;several
    multiple various many numerous varios mehrere viele;much mucho viel;shut close closed cierra cerrado schliesst
    geschlossen;open opened abre abierto offnet;early temprano fruh;late tarde spat;morning am mornings
    vormittag;evening pm evenings;night nightly noche nacht;monday montag lunes mondays;tuesday dienstag martes
    tuesdays;wednesday mittwoch miercoles wednesdays;thursday donnerstag jueves thursdays;friday freitag viernes
    fridays;saturday samstag sabado saturdays;sunday sonntag domingo sundays;euro euros eur;dollar dollars usd;pound
    pounds gbp;kilometre km kilometer kilometers kilometres;metre meter meters metres;kilogram kg kilo kilos
    kilograms;minute min minutes minuto;hour hr hours hora horas stunde stunden uhr;day days dia dias tage;week
    weeks semana woche;month months mes monat;year years ano jahr jahre;percent pct prozent;gigabyte gb;terabyte
    tb;emergency urgent emergencia notfall;insurance insure insured seguro versicherung;wedding marriage boda
    hochzeit;marry married verheiratet casado casada;divorce divorced separated;die died dead deceased murio
    gestorben;dog puppy perro hund;cat kitten gato katze;pet mascota haustier;present gift regalo geschenk;party
    celebration fiesta feier;visit visita besucht besuch;stay stays remain bleibt;borrow lend lent;train tren zug
    railway;bus coach autobus;airport aeropuerto flughafen;ticket billete fahrkarte;licence license licensed carnet
    fuhrerschein;key llave schlussel;door puerta tur;code pin codigo;address direccion adresse;number numero
    nummer;tool app application program software programm;team squad crew equipo;project proyecto projekt;client
    customer cliente kunde;goal aim target objective;idea notion;reason cause motive;result outcome;problem trouble
    difficulty;way manner;direct straight;quiet silent mute muted;noisy loud;over versus vs;under below beneath
    underneath;before antes vor bevor;after despues;between among;owe owes;rule policy
    norm;prohibit forbid ban forbidden;check verify inspect examine review revisa pruft;search seek busca
    sucht;organise organize arrange;paint painted;collect gather fetch;jam stick;rebuild rebuilt recreate
    regenerate;read reads lee liest;play plays juega spielt toca;cook cooks cocina kocht;clean tidy limpia putzt;swim
    swimming natacion schwimmt schwimmen;climb climbing escala klettert rocodromo;jog jogging corre joggt;cycle
    cycling radelt;exercise workout entrena trainiert;game match partido spiel;song tune;book libro buch bucher
    libros;letter carta;garden jardin garten;kitchen kuche;room habitacion zimmer;office despacho buro;floor
    storey;window fenster ventana;table mesa tisch;chair silla stuhl;bed cama bett;water agua wasser;coffee cafe
    kaffee;tea te tee;wine vino wein;beer cerveza bier;milk leche milch;bread pan brot;right correct;wrong
    incorrect;happy glad pleased;sad unhappy;angry cross annoyed;afraid scared frightened fear;tired exhausted;busy
    occupied;ready prepared;same identical equal;different distinct;main primary principal;available disponible
    verfugbar;missing lacking absent;broken faulty defective kaputt roto;private personal;official formal;whole
    entire;temporary interim;permanent lasting;recent latest;former previous ex;next upcoming following;weigh weight
    weighs;height tall;size talla grosse;colour color;default standard;launch golive;hire recruit;retire retired
    jubilado rentner;join joined joins joining;tax taxes;discount rebate;konto cuenta;card tarjeta karte;loan mortgage
    credit hipoteca hypothek
"""


@lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, str], dict[str, str]]:
    """The word that stands for a word's row: by the word as it is, and by its stem where no two rows share that."""
    words: dict[str, str] = {}
    for row in _SAME.split(";"):
        first, *others = (plain(word) for word in row.split())
        for word in (first, *others):
            words.setdefault(word, words.get(first, first))
    stems: dict[str, set[str]] = {}
    for word, first in words.items():
        stems.setdefault(stem(word), set()).add(first)
    return words, {root: next(iter(found)) for root, found in stems.items() if len(found) == 1}


def is_known(word: str) -> bool:
    """Whether a word, as `plain` gives it, is one of the tables: no name."""
    words, stems = _rows()
    return (
        word in SMALL
        or word in NEGATIONS
        or word in words
        or (word in WEEKDAYS and len(word) > 2)
        or stem(word) in stems
    )


@lru_cache(maxsize=1)
def phrases() -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    """First word → phrases that begin with it, longest first, and what each is read as; a denial is "not"."""
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for row in " ".join(_PHRASES.split()).split(";"):
        said, equals, meant = row.strip().partition("=")
        if equals:
            words = tuple(said.split())
            read = () if meant == "-" else ("not",) if meant == "~" else tuple(meant.split())
            found.setdefault(words[0], []).append((words, read))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


@lru_cache(maxsize=65_536)
def canonical(word: str) -> str:
    """What stands for a word and all that say the same."""
    words, stems = _rows()
    lower = plain(word)
    root = stem(lower)
    return words.get(lower) or stems.get(root) or root


# Limits: with one of them a line says less than without.
LIMITS = frozenset(
    canonical(word)
    for word in """only except unless if maybe perhaps sometimes rarely seldom occasionally until before after almost nearly
        half solo excepto quizas hasta antes despues casi nur ausser vielleicht manchmal selten bis vor fast
        weekly daily monthly yearly nightly hourly twice once thrice 1x 2x 3x mornings evenings""".split()
)
# Verbs that say little by themselves: one of them may stand for another when everything else is the same.
LIGHT = frozenset(
    canonical(word)
    for word in """get take make do handle responsible serve reach run operate use provide offer host perform hold have keep
        job work go start find give pay dose assign equip install amount come fall have visit trip drink wear
        measure stand located include receive have got apply fit feature contain count hacer tener usar machen haben nutzen""".split()
)

# Words of which only one can hold of a thing at a time.
_OPPOSED = [
    frozenset(map(canonical, pair.split()))
    for pair in """on off;open shut;enable disable;active inactive;public private;allow prohibit;like hate;alive dead;tolerant
        intolerant;vegetarian meat;single married;married divorce;early late;hot cold;cheap expensive;big small;fast slow;full
        empty;online offline;manual automatic;left right;indoors outdoors;mandatory optional;safe dangerous;accept
        reject;fix broken;morning evening;weekly monthly;daily weekly;even odd;deep shallow;wet dry;loud quiet;available
        unavailable;encrypted unencrypted;locked unlocked;employed unemployed;remote onsite""".split(";")
]
OPPOSITES: dict[str, list[frozenset[str]]] = {
    word: [pair for pair in _OPPOSED if word in pair] for pair in _OPPOSED for word in pair if len(pair) == 2
}
# What holds of two just as it holds the other way round.
SYMMETRIC = frozenset(canonical(word) for word in "marry meet friend neighbour colleague cousin twin sibling".split())
# What there is one of: of a person, a thing or a project.
SINGLE = frozenset(
    canonical(word)
    for word in """address age ancestry bank birthday birthplace blood boss budget capital captain ceiling client code colour
    commander dentist deadline director doctor domain editor employer expiry fiancee gate gp hairdresser height
    hometown
    hotel husband insurer ip landlord landlady lead leader license limit maintainer major manager mascot mayor
    nationality
    nickname number operator owner pace passphrase password pediatrician phone physician pin plan plate port
    president
    price principal provider quota rank rate rent salary size sponsor supervisor surname therapist timezone
    title treasurer
        vet veterinarian version wage weight wife""".split()
)
