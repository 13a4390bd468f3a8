"""Lists of ordinary words and names."""

NOUNS = (
    "apple garden bicycle bridge candle winter kettle lemon mirror pocket river saddle table tower violin window "
    "yellow zebra anchor basket camera dragon engine forest guitar hammer island jacket kitchen ladder market needle "
    "orange pencil rabbit silver ticket umbrella valley wagon beacon copper falcon harbor ivory jungle lantern meadow "
    "nectar ocean pepper quartz ribbon spider tunnel velvet walnut butter cheese coffee sugar bread milk eggs flour "
    "tomato onion potato carrot salad dinner lunch breakfast party meeting doctor dentist teacher lawyer neighbour "
    "mother father sister brother daughter son uncle aunt cousin friend boss colleague landlord plumber team client "
    "dog cat horse bird fish plant tree flower rose grass stone sand water fire wind rain snow storm cloud sun moon "
    "star planet rocket train plane boat car truck bus taxi van bike road street house flat office school church "
    "hotel station airport hospital library museum cinema theatre concert album song movie book page letter parcel "
    "package invoice receipt contract passport licence password key lock door roof wall floor ceiling lamp heater "
    "boiler oven fridge freezer washer dryer vacuum printer scanner monitor keyboard mouse laptop phone tablet "
    "charger battery cable router modem server cluster node backup snapshot archive log report summary budget draft "
    "plan agenda minutes notes todo list menu recipe shopping holiday travel trip visit birthday wedding anniversary "
    "present gift card flowers cake wine beer tea juice soup pizza pasta rice chicken beef salmon tuna medicine pills "
    "vitamins vaccine exercise swim yoga gym tennis football chess piano drums choir course lesson exam homework "
    "essay thesis paper slides poster diagram chart graph map photo picture video audio podcast newsletter rent tax "
    "insurance salary loan bank account bill fee price cost order delivery refund warranty deadline release launch "
    "sprint review demo test bug patch fix feature issue branch merge deploy migration schema index query cache queue "
    "worker token session user admin guest role group member profile avatar theme colour font size width height "
    "weight length speed power voltage current signal sensor motor wheel gear spring valve pump filter fan heat "
    "cooler pipe tank bottle glass cup plate bowl spoon fork knife pan pot towel soap brush comb shirt trousers shoes "
    "socks coat hat scarf gloves belt watch ring necklace wallet bag suitcase tent blanket pillow curtain carpet sofa "
    "chair desk shelf drawer cupboard mailbox fence gate shed garage balcony terrace attic cellar banana cherry peach "
    "pear plum grape melon kiwi lime raspberry strawberry blueberry fig coconut pineapple pumpkin spinach lettuce "
    "cabbage cauliflower broccoli celery radish garlic ginger leek bean lentil chickpea corn mushroom olive avocado "
    "courgette beetroot parsley basil thyme rosemary mint oregano cinnamon vanilla chili mustard ketchup mayonnaise "
    "oil honey syrup chocolate cookie biscuit cracker muffin pancake waffle croissant bagel toast sandwich burger "
    "sausage bacon ham turkey lamb pork steak shrimp lobster crab sardine noodle dumpling sushi curry stew casserole "
    "omelette yoghurt cream custard pudding pie tart candy snack lemonade cider champagne espresso cocoa oats cereal "
    "almond hazelnut raisin yeast dough sauce gravy broth mop broom dustbin rubbish iron toaster blender mixer stove "
    "grill barbecue sink tap shower toilet fireplace chimney doorbell cushion mattress duvet sheet pillowcase "
    "wardrobe hanger stool armchair bookcase cabinet dresser crib vase easel torch lighter jar tin carton crate sack "
    "hook nail screw bolt nut drill saw wrench screwdriver spanner toolbox tape rope chain string thread button "
    "scissors stapler paperclip envelope stamp binder notebook diary eraser chalk ruler compass globe telescope "
    "microscope binoculars flashlight tripod lens projector speaker microphone earbuds amplifier turntable cassette "
    "television antenna console joystick controller touchpad webcam adapter plug fuse switch dimmer bulb wire "
    "motorcycle scooter tram ferry yacht canoe kayak submarine helicopter balloon glider trailer caravan tractor "
    "lorry ambulance skateboard sled tyre brake pedal helmet windscreen bumper exhaust seatbelt petrol highway "
    "motorway crossroads roundabout pavement alley lane avenue trail platform terminal runway dock pier lighthouse "
    "canal apartment cabin villa castle temple mosque cathedral barn farm vineyard orchard greenhouse nursery "
    "kindergarten university college academy laboratory workshop factory warehouse mill brewery butcher "
    "grocery pharmacy florist barber salon boutique restaurant cafe kiosk stadium arena park zoo aquarium circus "
    "casino gallery studio courthouse embassy ministry parliament monument statue fountain cemetery courtyard "
    "corridor hallway staircase elevator escalator lobby lounge basement loft patio driveway accountant actor "
    "architect artist astronaut baker banker barista chef cleaner coach conductor courier decorator designer "
    "detective director driver editor electrician farmer gardener hairdresser janitor journalist judge librarian "
    "locksmith manager mechanic midwife musician nanny nurse optician painter pharmacist photographer physiotherapist "
    "pilot poet postman receptionist sailor scientist singer surgeon surveyor tailor technician therapist tutor vet "
    "waiter writer grandfather grandmother granddaughter nephew niece husband wife partner twin toddler baby teenager "
    "roommate tenant supplier customer investor intern trainee babysitter ant badger bat bear beaver bee beetle "
    "buffalo butterfly camel canary cheetah cobra crow dolphin donkey dove duck eagle eel elephant ferret flamingo "
    "fox frog gecko giraffe goat goose gorilla hamster hedgehog heron hippo iguana jaguar jellyfish kangaroo kitten "
    "koala ladybird lizard llama lynx magpie mole monkey moose moth mule octopus ostrich otter owl panda panther "
    "parrot peacock pelican penguin pigeon pony porcupine puppy raccoon rat raven reindeer rhino salamander scorpion "
    "seagull shark sheep snail snake sparrow squid squirrel stork swan toad tortoise turtle vulture walrus wasp whale "
    "wolf woodpecker worm beach bay cave cliff coast coral dune glacier hill hurricane iceberg lake lava marsh "
    "mountain mud pond puddle rainbow reef ridge stream summit sunrise swamp thunder tide tornado volcano waterfall "
    "wave breeze fog frost hail mist lightning acorn bamboo birch bush cactus daisy fern hedge ivy lavender leaf lily "
    "maple moss oak orchid petal pine poppy sunflower tulip vine willow arm beard bone chin ear elbow finger foot "
    "forehead hair hand heart heel hip knee leg lip lung mouth muscle neck nose shoulder skin tongue tooth thumb toe "
    "wrist allergy antibiotic aspirin bandage blister checkup cough crutch diet fever flu glasses headache inhaler "
    "insulin lotion massage ointment plaster prescription rash scar surgery syringe toothbrush toothpaste deodorant "
    "conditioner perfume razor tissue stroller apron blazer blouse boots bracelet cloak cufflinks dress earring gown "
    "jeans jersey jumper kimono leggings overalls overcoat pyjamas raincoat sari shorts skirt slippers sneakers "
    "stockings sunglasses sweater swimsuit tie tights uniform vest waistcoat handbag purse satchel agreement "
    "allowance announcement application appointment approval assignment attachment audit award badge benchmark bid "
    "blueprint bonus booking brochure bulletin cheque claim clause column complaint conference coupon curriculum "
    "dataset debate debt deposit dictionary diploma discount dispute donation edition estimate event expense "
    "experiment exhibition favour feedback festival firewall form formula framework fund glossary guide handbook "
    "handout hypothesis inventory itinerary journal label lecture leaflet magazine mandate manual manuscript mascot "
    "memo milestone mission mortgage motto novel offer opinion outline pamphlet pension permit petition pitch "
    "playlist policy portfolio postcard presentation prize prototype protocol questionnaire quiz quota rating "
    "referral registration reservation resume roster routine rumour rota sample screenshot script seminar settlement "
    "shipment signature sketch slogan spreadsheet statement subscription survey syllabus target tariff template "
    "trademark transcript transfer treaty trial tutorial voucher warrant webinar wishlist workbook worksheet backlog "
    "barcode browser bundle checkbox checklist cursor decoder dropdown encoder footer gradient hash header hotfix "
    "icon listener login logo loop macro middleware mockup navbar parser payload pipeline plugin popup scraper "
    "scrollbar sidebar slider snippet sprite stylesheet subtitle tab thumbnail toggle tracker typo validator variable "
    "watermark wireframe workflow wrapper accordion banjo bassoon cello clarinet flute harmonica harp mandolin oboe "
    "organ saxophone trumpet tuba ukulele xylophone ballet opera orchestra band rhythm lyrics puzzle crossword dice "
    "marble kite puppet teddy swing trampoline trophy medal racket hockey volleyball basketball baseball cricket "
    "badminton golf boxing archery marathon knitting embroidery pottery calligraphy quilt tapestry mosaic canvas clay "
    "campfire picnic hammock bait snorkel surfboard paddle oar sail rudder wetsuit goggles skates skis snowboard "
    "carnival ceremony christening funeral graduation honeymoon reunion parade retirement brunch buffet banquet "
    "cocktail feast apology crisis decision dream emergency excuse habit hint idea joke journey legend miracle "
    "mistake mood mystery myth nightmare opportunity problem promise proverb reason risk ritual skill smile spirit "
    "surprise tradition treasure trick trouble truth vision wish"
).split()
ADJECTIVES = (
    "red blue green yellow black white grey purple pink brown old new big small long short fast slow warm cold hot "
    "dry wet quiet loud bright dark sweet sour bitter fresh clean dirty empty full open closed heavy light soft hard "
    "cheap good bad best happy sad tired busy free early late next last first second third daily weekly monthly final "
    "public private secret local remote main spare broken lost special important urgent simple strange nice favourite "
    "vegan left right upper lower northern wooden plastic golden tiny huge narrow wide rough smooth ancient angry "
    "annual automatic awful basic beautiful blank blunt brave calm classic clever clumsy cosy creamy crisp crooked "
    "curly cute dangerous delicate digital dim double dull dusty electric elegant exact expensive fair faint famous "
    "fat foggy foreign formal frozen funny fuzzy generous gentle giant glossy grand greasy great grumpy handmade "
    "healthy hidden hollow humble icy idle inner internal jolly juicy junior kind large lazy loose lucky massive "
    "medium messy metal mild missing mobile modern muddy natural normal official optional organic original outdoor "
    "outer overdue pale perfect permanent personal plain polite popular portable premium printed proper proud quick "
    "random rare raw reliable rich scary separate shallow sharp shiny shy silent silly single sleepy slim smart steep "
    "sticky strong sturdy sunny tall tasty thin tidy tight tough transparent tricky unique useful weak wild woollen "
    "young"
).split()
VERBS = (
    "buy sell call email visit water feed clean wash fix repair paint move pack send collect return book cancel renew "
    "pay check test update restart reboot upgrade install charge order cook bake prepare finish start review sign "
    "print scan read write draft publish submit join leave meet ask thank invite change replace empty fill open close "
    "lock turn take bring give drop learn study plan measure record rename merge deploy rotate swap sort count "
    "archive delete defrost adjust advertise air announce apply approve arrange assemble attach block brush carry "
    "chase choose claim complete confirm connect contact convert cover crop decorate describe digitise disconnect "
    "discuss document donate download drain draw drive dry dust edit enjoy examine exchange export find fold follow "
    "frame freeze fry glue grab grate grease grill grow guard hang heat hide hire host import improve inspect invent "
    "iron keep knit label laminate launch lend lift load mark mend milk mix mount mow mute oil organise pause peel "
    "photograph polish post practise present press promote protect pull push question quote raise reach rebuild "
    "recharge recycle refill refund register release rent reorder report reserve reset rewrite ride roll save seal "
    "season sew share sharpen shorten show shred simplify sketch slice spray stack stretch sweep switch tag teach tie "
    "touch track trade train trim tune unlock unpack unplug upload validate verify warm watch weigh wipe wrap"
).split()
PEOPLE = (
    "Anna Ben Clara David Emma Felix Grace Henry Ines Jonas Karla Leo Maria Nina Oscar Paula Quentin Rosa Simon Tara "
    "Ursula Victor Wendy Xavier Yara Zoe Alice Bob Carol Dan Eve Frank Gina Hugo Iris Jack Kate Lars Mona Noah Olga "
    "Peter Ravi Sofia Tom Uma Vera Will Yusuf Zara Marta Pierre Chen Priya Omar Fatima Kofi Ingrid Dmitri Mei Hana "
    "Luca Giulia Pablo Lucia Sven Astrid Niamh Sean Aisha Tariq Adam Agnes Ahmed Akira Alan Albert Alejandro Amara "
    "Amelia Andrea Andrew Anton Arthur Ayesha Bianca Bjorn Boris Bruno Carlos Caroline Cecilia Charles Charlotte "
    "Chiara Chloe Christine Claire Daniel Daria Deepak Diana Dora Edith Eduardo Elena Elias Elif Elizabeth Ella Emil "
    "Emre Enzo Eric Erika Esther Eva Fernando Fiona Francesca Freya Gabriel George Gerard Gloria Gustav Hamid Hannah "
    "Harold Hassan Heidi Helen Helga Hiroshi Ibrahim Ida Igor Imani Irene Isaac Isabel Ivan Ivy Jacob James Jan "
    "Jasmine Javier Jean Jenny Jin Joan Joao Johan Joseph Juan Judith Julia Jun Kai Karim Keiko Kemal Khalid Kim Kira "
    "Kwame Laila Lara Leila Lena Lily Linda Lisa Liu Louis Lucy Magda Malik Marco Margaret Mark Martin Mateo Max Maya "
    "Mia Michael Miguel Mila Mina Mira Moses Naomi Natalia Nikolai Nils Nora Olivia Otto Pavel Petra Philip Rachel "
    "Raj Rebecca Robert Ruth Salma Samuel Sandra Sanjay Sara Stefan Susan Tatiana Thomas Tobias Valentina Vikram Yuki "
    "Zainab"
).split()
SURNAMES = (
    "Miller Keller Rossi Novak Larsen Dubois Moreau Silva Costa Tanaka Kim Singh Patel Okafor Mensah Weber Fischer "
    "Brown Clark Hughes Murphy Jensen Berg Kowalski Ivanov Popov Garcia Lopez Haddad Cohen Adams Ahmed Ali Andersson "
    "Bailey Becker Bernard Bianchi Brandt Campbell Carter Castro Chaudhry Collins Cooper Cruz Davies Demir Diallo "
    "Dogan Duarte Eriksen Esposito Evans Farkas Fernandez Ferrari Fleming Fontaine Foster Friedman Gonzalez Graham "
    "Greco Gruber Gustafsson Hansen Hartmann Hernandez Hoffmann Jackson Janssen Johansson Kaya Khan Kobayashi Koch "
    "Krause Lambert Lang Laurent Levy Marino Mehta Meyer Mitchell Morris Mwangi Nagy Nakamura Nguyen Nielsen O'Connor "
    "Olsen Ortiz Osei Parker Pereira Peters Petit Ramirez Reed Reyes Richter Romano Roy Santos Schmidt Sharma Suzuki "
    "Taylor Torres Vargas Vasquez Wagner Walker Watanabe Watson Wilson Wong Yilmaz Zhang"
).split()
PLACES = (
    "Paris London Berlin Madrid Rome Lisbon Vienna Prague Oslo Dublin Athens Tokyo Osaka Lima Quito Cairo Lagos "
    "Nairobi Delhi Mumbai Sydney Perth Toronto Boston Denver Austin Lyon Nantes Geneva Zurich Hamburg Munich Leipzig "
    "Porto Seville Turin Naples Krakow Gdansk Malmo Bergen Ghent Aberdeen Accra Amsterdam Ankara Auckland Beirut "
    "Bilbao Bologna Bordeaux Brighton Bristol Bruges Bucharest Budapest Calgary Cambridge Canberra Cardiff Casablanca "
    "Chicago Cologne Cordoba Cork Dakar Dallas Dresden Dubai Edinburgh Florence Frankfurt Galway Glasgow Granada Graz "
    "Halifax Havana Helsinki Houston Jakarta Karachi Liverpool Ljubljana Lucerne Manchester Manila Marseille "
    "Melbourne Miami Montreal Nagoya Nice Ottawa Palermo Phoenix Pisa Reykjavik Riga Rotterdam Salzburg Santiago "
    "Sapporo Sarajevo Seattle Shanghai Singapore Sofia Split Stockholm Strasbourg Stuttgart Tallinn Toulouse Tunis "
    "Utrecht Valencia Venice Vilnius Warsaw York Zagreb"
).split()
STEMS = (
    "notes todo report draft summary plan budget list shopping diary journal ideas readme main app server client "
    "index config settings test utils helper model train data results output input log error access users orders "
    "prices invoice letter recipe menu travel schedule agenda minutes contacts birthdays quotes poem story chapter "
    "intro outline changelog license setup build deploy run start stop backup restore install update check monitor "
    "metrics sensor temps weather score game player level map world camera photo scan page style theme layout header "
    "footer login account profile payment cart product catalog stock export import query schema table routes views "
    "models worker queue cache parser lexer tokens grammar node tree graph matrix vector tensor layer loss eval "
    "sample hello about addresses album alarm alerts analysis animals answers api article auth base bookmarks books "
    "bookings cars chat checklist cities commands common constants controller costs countries courses credits cron "
    "crops customers dashboard debug demo devices dictionary docker dump employees engine entry errors essay events "
    "example exercises expenses faq features feedback fetch files filters flights fonts form functions garden gifts "
    "grades groceries guests guide handler health history holidays home hosts html images info inbox inventory items "
    "keys kitchen labels lessons library local logger makefile manual mapping members memo messages migration misc "
    "mixer movies music names network news numbers options overview passwords people phones plants playlist plugin "
    "policy print quiz release reminders requests requirements review roadmap salary samples scores secrets sessions "
    "sizes slides songs sources speech stats steps strings students subscribers survey tasks teams template tests "
    "thesis timer timetable tools topics tracker translations upload vendors video vocabulary wishlist workouts"
).split()
EXTENSIONS = (
    "txt md py json csv log sh toml yaml yml ini html css js ts c h cpp rs go java sql xml conf cfg rst tex pdf png jpg "
    "zip gz tar env lock bak"
).split()
TEXTS = "txt md py json csv log sh toml yaml ini html css js conf cfg rst".split()
FOLDERS = (
    "src docs tests data logs scripts config notes lib bin assets images reports backup tmp old new archive build web "
    "api server client tools models photos music work home private drafts letters results inputs outputs exports july "
    "march april audio books cache components contracts december demo designs dist downloads etc examples family "
    "fonts games garden history icons imports inbox include invoices january june mail meetings misc movies november "
    "october papers personal plans plugins projects public resources school september services shared slides "
    "spec static styles tax templates themes trips utils vendor videos"
).split()
REPOS = (
    "website blog dotfiles backend frontend shop api notes infra homepage wiki tools robot garden thermostat weather "
    "invoices bot firmware kernel compiler engine parser toolkit portal dashboard mobile docs scripts tracker "
    "planner voltaire ledger library music photos camera sensors gateway proxy router billing search crawler accounts "
    "admin agent alerts analytics automation bookmarks calculator calendar catalog charts chess cli client cms config "
    "console contacts core courses crm deploy design desktop devices drivers editor emulator events examples "
    "experiments extension feeds forms forum framework game graphics handbook helpdesk home icons importer inventory "
    "ios journal mailer maps marketing media messenger newsletter optimizer orders packages platform player plugins "
    "podcast pipeline prototype quiz registry reports resume rocket scheduler scraper service shell slides solver "
    "studio support sync templates terminal tests theme timer tutorials utils vault wallet widgets worker workshop"
).split()
KEYS = (
    "port host user name title version timeout retries debug level color theme language region zone path root size "
    "limit width height speed rate price total count mode owner author email license status state key token url "
    "address city phone code model batch steps seed threads workers memory interval delay offset margin currency "
    "active amount attempts bucket compress database depth description device domain enabled encoding endpoint "
    "expires file filter folder format frequency icon id image index length locale min nickname order output page "
    "password prefix profile quantity room salary score server shape source street target threshold tolerance type "
    "username verbose volume weight window"
).split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
ONSETS = "b c d f g h j k l m n p r s t v w z br cr dr fr gr pl st tr ch sh th qu".split()
VOWELS = "a e i o u a e i o u ai ea ou oo".split()
CODAS = " n r s t l m x k nd rt st ck".split(" ")
TITLES = "Dr. Mr Mrs Ms Prof. Dr Mr. Mrs. Miss Aunt Uncle".split()
RELATIVES = "Mum Dad Grandma Grandpa Granny Mom".split()
HEADS = (
    "web my home smart data photo mail net cloud test auto mini micro multi pet book game time "
    "note open pay play live quick snap town easy fast job code file talk sun city team news "
    "super tiny green"
).split()
TAILS = (
    "shop hub kit lab box board desk list map base view cast feed store book page site log app "
    "bot link pad ship flow watch works space craft port mate line stack sync drop point room "
    "track wiki"
).split()
ROLES = (
    "dentist doctor landlord plumber lawyer accountant vet teacher neighbour boss sister "
    "brother mother father cousin aunt uncle electrician bank insurance school garage library "
    "office team colleague client hairdresser tutor mechanic"
).split()
IRREGULAR = {
    "knife": "knives",
    "shelf": "shelves",
    "scarf": "scarves",
    "leaf": "leaves",
    "wolf": "wolves",
    "foot": "feet",
    "tooth": "teeth",
    "mouse": "mice",
    "goose": "geese",
    "wife": "wives",
    "sheep": "sheep",
    "fish": "fish",
    "deer": "deer",
    "tomato": "tomatoes",
    "potato": "potatoes",
}
MASS = frozenset(
    "bread milk butter sugar flour rice beef juice tea coffee water sand rain snow weather grass soap medicine "
    "luggage homework furniture garlic honey oil petrol diesel laundry rubbish trash recycling compost bleach mud fog "
    "frost hail lightning thunder hair blood skin feedback insurance football tennis chess yoga golf hockey rugby "
    "volleyball basketball baseball cricket badminton boxing archery swim exercise heat silver copper ivory".split()
)
